// Offers calls at a fixed rate whether they are answered or not, over as many keep-alive connections as are given: an arrival
// that finds all of them waiting for an answer is counted as unsent. Prints one JSON line.
// usage: flood PORT requestfile connections rate seconds
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

typedef struct {
  int fd, got, status, waits;
  long left; // of the body; -1 while the headers are read
  uint64_t at;
  char head[4096];
} Call;

typedef struct {
  uint32_t *a;
  long n, cap;
} Times;

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000ull + t.tv_nsec / 1000;
}

static void keep(Times *v, uint32_t x) {
  if (v->n == v->cap)
    v->a = realloc(v->a, (v->cap = v->cap ? v->cap * 2 : 65536) * sizeof *v->a);
  v->a[v->n++] = x;
}

static int compare(const void *a, const void *b) {
  uint32_t x = *(uint32_t *)a, y = *(uint32_t *)b;
  return x < y ? -1 : x > y;
}

static uint32_t share(Times *v, double p) {
  return v->n ? v->a[(long)(p * (v->n - 1))] : 0;
}

static int epoll, port, length;
static char request[1 << 20];
static Call *calls, **idle;
static long idles, sent, unsent, cut, others, connects;
static Times good, refused;

static void ready(Call *c) {
  c->waits = 0;
  idle[idles++] = c;
}

static int join(Call *c) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int one = 1;
  c->fd = socket(AF_INET, SOCK_STREAM, 0);
  if (c->fd < 0 || connect(c->fd, (void *)&to, sizeof to)) {
    if (c->fd >= 0)
      close(c->fd);
    c->fd = -1;
    return -1;
  }
  setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
  epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &e);
  connects++;
  return 0;
}

static void begin(Call *c, uint64_t at) {
  c->at = at;
  c->waits = 1;
  c->got = 0;
  c->left = -1;
  sent++;
  if ((c->fd < 0 && join(c)) || write(c->fd, request, length) != length) {
    if (c->fd >= 0)
      close(c->fd);
    c->fd = -1;
    cut++;
    ready(c);
  }
}

static void end(Call *c) {
  uint32_t took = now() - c->at;
  if (c->status == 200)
    keep(&good, took);
  else if (c->status == 503)
    keep(&refused, took);
  else
    others++;
  if (strcasestr(c->head, "connection: close")) {
    close(c->fd);
    c->fd = -1;
  }
  ready(c);
}

static void hear(Call *c) {
  static char rest[65536];
  if (c->left < 0) {
    long n = read(c->fd, c->head + c->got, sizeof c->head - 1 - c->got);
    if (n <= 0)
      goto lost;
    c->head[c->got += n] = 0;
    char *body = strstr(c->head, "\r\n\r\n");
    if (!body) {
      if (c->got == sizeof c->head - 1)
        goto lost;
      return;
    }
    char *said = strcasestr(c->head, "content-length:");
    c->status = atoi(c->head + 9);
    c->left = (said ? atol(said + 15) : 0) - (c->head + c->got - body - 4);
    body[4] = 0;
  } else {
    long n = read(c->fd, rest, sizeof rest);
    if (n <= 0)
      goto lost;
    c->left -= n;
  }
  if (c->left <= 0)
    end(c);
  return;
lost:
  close(c->fd);
  c->fd = -1;
  // Between two calls it may be closed; in the middle of one it may not.
  if (c->waits) {
    cut++;
    ready(c);
  }
}

int main(int count, char **given) {
  if (count < 6)
    return 2;
  signal(SIGPIPE, SIG_IGN);
  struct rlimit files = {60000, 60000};
  setrlimit(RLIMIT_NOFILE, &files);
  port = atoi(given[1]);
  FILE *file = fopen(given[2], "r");
  length = fread(request, 1, sizeof request, file);
  long n = atol(given[3]);
  double rate = atof(given[4]), seconds = atof(given[5]);
  epoll = epoll_create1(0);
  calls = calloc(n, sizeof *calls);
  idle = malloc(n * sizeof *idle);
  for (long i = 0; i < n; i++)
    if (join(&calls[i]) == 0)
      ready(&calls[i]);
  struct epoll_event events[512];
  uint64_t from = now(), to = from + seconds * 1e6, arrived = 0;
  for (uint64_t t = from; t < to; t = now()) {
    for (; from + arrived * 1e6 / rate <= t; arrived++)
      if (idles)
        begin(idle[--idles], t);
      else
        unsent++;
    int some = epoll_wait(epoll, events, 512, 1);
    for (int i = 0; i < some; i++)
      hear(events[i].data.ptr);
  }
  qsort(good.a, good.n, sizeof *good.a, compare);
  qsort(refused.a, refused.n, sizeof *refused.a, compare);
  printf("{\"arrived\":%ld,\"sent\":%ld,\"unsent\":%ld,\"ok\":%ld,\"ok50\":%u,\"ok99\":%u,\"refused\":%ld,\"refused50\":%u,"
         "\"refused99\":%u,\"others\":%ld,\"cut\":%ld,\"connects\":%ld}\n",
         (long)arrived, sent, unsent, good.n, share(&good, .5), share(&good, .99), refused.n, share(&refused, .5),
         share(&refused, .99), others, cut, connects);
  return 0;
}
