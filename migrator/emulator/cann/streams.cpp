// Streams and events. Work is done before the call that starts it returns, so a stream is always empty and an
// event has always happened; what is left of an event is the time at which it was recorded.
#include <acl/acl.h>

#include <atomic>
#include <chrono>
#include <cstring>

namespace {

struct Stream {
  int id;
};
struct Event {
  double microseconds = 0;
};

aclError new_stream(aclrtStream* stream) {
  static std::atomic<int> last{0};
  *stream = new Stream{++last};
  return ACL_SUCCESS;
}

aclError new_event(aclrtEvent* event) {
  *event = new Event;
  return ACL_SUCCESS;
}

// Raises errors that wait for a synchronization.
void (*synchronized)() = [] {};

aclError wait() {
  synchronized();
  return ACL_SUCCESS;
}

double now() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

extern "C" {

void emulator_on_synchronization(void (*act)()) { synchronized = act; }

aclError aclrtCreateStream(aclrtStream* stream) { return new_stream(stream); }
aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t, uint32_t) { return new_stream(stream); }
aclError aclrtDestroyStream(aclrtStream stream) {
  delete static_cast<Stream*>(stream);
  return ACL_SUCCESS;
}
aclError aclrtDestroyStreamForce(aclrtStream stream) { return aclrtDestroyStream(stream); }
aclError aclrtStreamGetId(aclrtStream stream, int32_t* id) {
  *id = stream == nullptr ? 0 : static_cast<Stream*>(stream)->id;
  return ACL_SUCCESS;
}
aclError aclrtStreamQuery(aclrtStream, aclrtStreamStatus* status) {
  *status = ACL_STREAM_STATUS_COMPLETE;
  return ACL_SUCCESS;
}
aclError aclrtSynchronizeStream(aclrtStream) { return wait(); }
aclError aclrtSynchronizeStreamWithTimeout(aclrtStream, int32_t) { return wait(); }
aclError aclrtSynchronizeDevice() { return wait(); }
aclError aclrtSynchronizeDeviceWithTimeout(int32_t) { return wait(); }
aclError aclrtSetStreamOverflowSwitch(aclrtStream, uint32_t) { return ACL_SUCCESS; }
aclError aclrtGetStreamOverflowSwitch(aclrtStream, uint32_t* flag) {
  *flag = 0;
  return ACL_SUCCESS;
}

aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t) { return new_event(event); }
aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t) { return new_event(event); }
aclError aclrtDestroyEvent(aclrtEvent event) {
  delete static_cast<Event*>(event);
  return ACL_SUCCESS;
}
aclError aclrtRecordEvent(aclrtEvent event, aclrtStream) {
  static_cast<Event*>(event)->microseconds = now();
  return ACL_SUCCESS;
}
#ifdef ACL_IPC_EVENT_HANDLE_SIZE
// For another process: what the event stands for has been done there as well.
aclError aclrtIpcGetEventHandle(aclrtEvent, aclrtIpcEventHandle* handle) {
  std::memset(handle, 0, sizeof *handle);
  return ACL_SUCCESS;
}
aclError aclrtIpcOpenEventHandle(aclrtIpcEventHandle, aclrtEvent* event) { return new_event(event); }
#endif
aclError aclrtResetEvent(aclrtEvent, aclrtStream) { return ACL_SUCCESS; }
aclError aclrtStreamWaitEvent(aclrtStream, aclrtEvent) { return ACL_SUCCESS; }
aclError aclrtSynchronizeEvent(aclrtEvent) { return ACL_SUCCESS; }
aclError aclrtEventElapsedTime(float* milliseconds, aclrtEvent start, aclrtEvent end) {
  *milliseconds = static_cast<float>(
      (static_cast<Event*>(end)->microseconds - static_cast<Event*>(start)->microseconds) / 1000);
  return ACL_SUCCESS;
}
aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t* microseconds) {
  *microseconds = static_cast<uint64_t>(static_cast<Event*>(event)->microseconds);
  return ACL_SUCCESS;
}
aclError aclrtQueryEventStatus(aclrtEvent, aclrtEventRecordedStatus* status) {
  *status = ACL_EVENT_RECORDED_STATUS_COMPLETE;
  return ACL_SUCCESS;
}
aclError aclrtQueryEventWaitStatus(aclrtEvent, aclrtEventWaitStatus* status) {
  *status = ACL_EVENT_WAIT_STATUS_COMPLETE;
  return ACL_SUCCESS;
}

// Functions of the host, to be called when the stream comes to them: it has come to them now.
aclError aclrtLaunchCallback(aclrtCallback function, void* data, aclrtCallbackBlockType, aclrtStream) {
  function(data);
  return ACL_SUCCESS;
}
aclError aclrtLaunchHostFunc(aclrtStream, void (*function)(void*), void* data) {
  function(data);
  return ACL_SUCCESS;
}
aclError aclrtSubscribeReport(uint64_t, aclrtStream) { return ACL_SUCCESS; }
aclError aclrtUnSubscribeReport(uint64_t, aclrtStream) { return ACL_SUCCESS; }

}  // extern "C"
