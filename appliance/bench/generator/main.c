/* The load generator: one thread and epoll. Reads a plan from standard input, prints one line of JSON. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include "connection.h"
#include "meter.h"
#include "plan.h"

#define EVENTS_AT_ONCE 256
#define TICK_MS 20
#define STILL_NS INT64_C(60000000000) /* a broker that is silent for so long is given up */

struct load {
    struct plan plan;
    struct meter meter;
    struct connection *connections;
    int poller;
};

static void allow_descriptors(int connections) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
        if (limit.rlim_max != RLIM_INFINITY && (rlim_t)connections + 16 > limit.rlim_max)
            die("%d connections are more than the limit of open files allows (%lu)", connections, limit.rlim_max);
    }
}

static void watch(struct load *load, struct connection *connection, int operation) {
    int writes = connection_has_unsent(connection) || (load->plan.kind == ONE_WAY && !connection->closing);
    struct epoll_event event = {.events = EPOLLIN | (writes ? EPOLLOUT : 0), .data.ptr = connection};
    if (epoll_ctl(load->poller, operation, connection->descriptor, &event) != 0)
        die("epoll: %s", strerror(errno));
}

static void open_all(struct load *load) {
    int count = load->plan.connections;
    allow_descriptors(count);
    load->poller = epoll_create1(EPOLL_CLOEXEC);
    load->connections = calloc((size_t)count, sizeof *load->connections);
    if (load->poller < 0 || load->connections == NULL)
        die("no memory for %d connections", count);
    for (int index = 0; index < count; index++)
        connection_open(&load->connections[index], &load->plan, index);
}

static void start_all(struct load *load) {
    meter_start(&load->meter);
    for (int index = 0; index < load->plan.connections; index++) {
        struct connection *connection = &load->connections[index];
        connection_fill(connection, &load->plan, &load->meter, clock_ns());
        watch(load, connection, EPOLL_CTL_ADD);
    }
}

static void serve(struct load *load, struct connection *connection, uint32_t events, int go_on) {
    int had_unsent = connection_has_unsent(connection);
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        connection_receive(connection, &load->plan, &load->meter, go_on);
    if (events & EPOLLOUT) {
        if (load->plan.kind == ONE_WAY && go_on && !connection->closing)
            connection_fill(connection, &load->plan, &load->meter, 0);
        else
            connection_flush(connection);
    }
    int flows = load->plan.kind == ONE_WAY && !connection->closing; /* always has something to write */
    if (!flows && had_unsent != connection_has_unsent(connection))
        watch(load, connection, EPOLL_CTL_MOD);
}

static int under_way(const struct load *load) {
    int count = 0;
    for (int index = 0; index < load->plan.connections; index++)
        count += load->connections[index].under_way;
    return count;
}

static void close_one_way(struct load *load) {
    for (int index = 0; index < load->plan.connections; index++) {
        struct connection *connection = &load->connections[index];
        connection_close_one_way(connection, &load->plan, clock_ns());
        watch(load, connection, EPOLL_CTL_MOD);
    }
}

static void run(struct load *load) {
    struct epoll_event events[EVENTS_AT_ONCE];
    int64_t last_ns = clock_ns();
    int closed = 0;
    while (1) {
        int64_t now_ns = clock_ns();
        int go_on = meter_goes_on(&load->meter, &load->plan, now_ns);
        if (!go_on && load->plan.kind == ONE_WAY && !closed) {
            close_one_way(load);
            closed = 1;
        }
        if (!go_on && under_way(load) == 0)
            return;
        int count = epoll_wait(load->poller, events, EVENTS_AT_ONCE, TICK_MS);
        if (count < 0 && errno != EINTR)
            die("epoll: %s", strerror(errno));
        if (count > 0)
            last_ns = clock_ns();
        else if (now_ns - last_ns > STILL_NS)
            die("%d answers are missing, and none has come for %d s", under_way(load), (int)(STILL_NS / 1000000000));
        for (int index = 0; index < count; index++)
            serve(load, events[index].data.ptr, events[index].events, go_on);
    }
}

int main(void) {
    static struct load load; /* large: not on the stack */
    load.plan = plan_read();
    open_all(&load);
    start_all(&load);
    run(&load);
    if (load.plan.kind == ONE_WAY)
        meter_measure_all(&load.meter);
    meter_print(&load.meter);
    return 0;
}
