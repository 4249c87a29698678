/* Makes rare hangs sure: a thread of Gloo is late when it drops a work that is done.
 *
 * These threads wait on a condition for work, and hold the mutex of that condition when they drop it. Before they
 * lock it they sleep here for SLOW_GLOO microseconds, as on a busy machine. Preloaded, see slow_gloo.py.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static __thread pthread_mutex_t* of_queue;

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  int (*next)(pthread_cond_t*, pthread_mutex_t*) = dlsym(RTLD_NEXT, "pthread_cond_wait");
  char name[16] = "";
  if (of_queue == NULL && pthread_getname_np(pthread_self(), name, sizeof name) == 0 &&
      strcmp(name, "pt_gloo_runloop") == 0)
    of_queue = mutex;
  return next(condition, mutex);
}

int pthread_mutex_lock(pthread_mutex_t* mutex) {
  static int (*next)(pthread_mutex_t*);
  if (next == NULL) next = dlsym(RTLD_NEXT, "pthread_mutex_lock");
  if (mutex == of_queue && of_queue != NULL) usleep(atoi(getenv("SLOW_GLOO")));
  return next(mutex);
}
