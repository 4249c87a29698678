# CANN's own variables, unless the image has set them.
if [ -z "${ASCEND_HOME_PATH:-}" ]; then
  for file in /usr/local/Ascend/ascend-toolkit/set_env.sh /usr/local/Ascend/cann/set_env.sh; do
    if [ -f "$file" ]; then . "$file"; break; fi
  done
fi
exec @COMMAND@
