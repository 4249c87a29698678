_base_ = "base.py"
model = dict(type="Small", width=8, classes=3)
train = dict(batches=3, batch_size=4)
