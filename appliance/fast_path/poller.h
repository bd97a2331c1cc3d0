/* epoll, and where the system has none a stand-in that never opens: sockets are then read by the event loop alone. */
#ifndef GANTRY_POLLER_H
#define GANTRY_POLLER_H

#ifdef __linux__
#include <sys/epoll.h>
#else
#include <stdint.h>
enum { EPOLL_CLOEXEC, EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLLIN = 1, EPOLLRDHUP = 2 };
typedef union epoll_data {
    int fd;
} epoll_data_t;
struct epoll_event {
    uint32_t events;
    epoll_data_t data;
};
static inline int epoll_create1(int flags) {
    (void)flags;
    return -1;
}
static inline int epoll_ctl(int poller, int operation, int descriptor, struct epoll_event *event) {
    (void)poller, (void)operation, (void)descriptor, (void)event;
    return -1;
}
static inline int epoll_wait(int poller, struct epoll_event *events, int count_max, int timeout_ms) {
    (void)poller, (void)events, (void)count_max, (void)timeout_ms;
    return -1;
}
#endif

#include <sys/socket.h>
#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif

#endif
