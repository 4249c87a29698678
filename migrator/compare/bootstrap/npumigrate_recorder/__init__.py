"""The recorder: it lives in the processes of the program that ``npumigrate record`` starts."""
