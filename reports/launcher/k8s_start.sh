# CANN's own variables, unless the image has set them.
if [ -z "${ASCEND_HOME_PATH:-}" ]; then
  for folder in /usr/local/Ascend/ascend-toolkit /usr/local/Ascend/cann /opt/Ascend/ascend-toolkit /opt/Ascend/cann; do
    if [ -f "$folder/set_env.sh" ]; then . "$folder/set_env.sh"; break; fi
  done
  [ -n "${ASCEND_HOME_PATH:-}" ] || echo @SET_ENV_MISSING@ >&2
fi
exec @COMMAND@
