// Cheapest possible OpenAI-like upstream: one-thread epoll HTTP/1.1 keep-alive server.
// POST anything. Body containing "stream":true -> SSE, else static ~600 B JSON chat completion (to GET as well).
// usage: mock PORT [chunks=100] [interval_us=0] [first_delay_us=0] [batch=0]
//   interval 0 = one chunk per connection per loop turn (round robin, one write() per chunk);
//   batch 1 = whole SSE body in a single write (coalesced upstream).
// A body that contains "FAST" (with quotes) is streamed with interval 0 whatever interval_us says (for warm-up).
// Each chunk's delta.content carries "t=<CLOCK_MONOTONIC us>" so a client on this host can compute chunk delay.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#define MAXFD 65536
#define RB 65536

typedef struct {
  char *b;
  int cap;
  int len;
  int need;
  int gen;
  int sent;
  int busy;
  int fast;
  uint64_t due;
} C;

static C *cs[MAXFD];

typedef struct {
  uint64_t at;
  int fd;
  int gen;
  int kind;
} Q; // kind 0: send json, 1: start sse, 2: next chunk

#define QN (1 << 17)
static Q q1[QN], q2[QN];
static unsigned h1, t1, h2, t2;

static uint64_t now() {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000ull + t.tv_nsec / 1000;
}

static int NCH = 100, BATCH = 0;
static uint64_t IV = 0, FD = 0;
static int ep;
static char JR[2048];
static int JL;
static const char SH[] =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nCache-Control: "
    "no-cache\r\nx-request-id: req_0123456789abcdef\r\nTransfer-Encoding: chunked\r\n\r\n";
static char *BB;
static int BL;

static int mkchunk(char *o, uint64_t t, int last) {
  char b[1024];
  int n;
  if (!last)
    n = sprintf(b,
                "data: "
                "{\"id\":\"chatcmpl-A1b2C3d4E5\",\"object\":\"chat.completion.chunk\",\"created\":1731600000,"
                "\"model\":\"mock-1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"t=%016llu\"},"
                "\"finish_reason\":null}]}\n\n",
                (unsigned long long)t);
  else
    n = sprintf(b,
                "data: "
                "{\"id\":\"chatcmpl-A1b2C3d4E5\",\"object\":\"chat.completion.chunk\",\"created\":1731600000,"
                "\"model\":\"mock-1\",\"choices\":[],\"usage\":{\"prompt_tokens\":57,\"completion_tokens\":%"
                "d,\"total_tokens\":%d}}\n\n",
                NCH, NCH + 57);
  int m = sprintf(o, "%x\r\n", n);
  memcpy(o + m, b, n);
  memcpy(o + m + n, "\r\n", 2);
  return m + n + 2;
}

static void cl(int fd) {
  if (cs[fd]) {
    cs[fd]->gen++;
    cs[fd]->len = 0;
    cs[fd]->need = 0;
    cs[fd]->busy = 0;
  }
  close(fd);
}

static int wr(int fd, const char *b, int n) { // blocking-ish write
  while (n > 0) {
    int r = write(fd, b, n);
    if (r < 0) {
      if (errno == EAGAIN) {
        usleep(50);
        continue;
      }
      cl(fd);
      return -1;
    }
    b += r;
    n -= r;
  }
  return 0;
}

static void push2(int fd) {
  int f = cs[fd]->fast;
  Q *e = f ? &q1[t1++ & (QN - 1)] : &q2[t2++ & (QN - 1)];
  // From the moment when the last one was due, not when it was sent: else streams that were late together stay together, and
  // in the end all of them speak at once.
  e->at = f ? now() : (cs[fd]->due += IV);
  e->fd = fd;
  e->gen = cs[fd]->gen;
  e->kind = 2;
}

static void startsse(int fd) {
  C *c = cs[fd];
  if (BATCH) {
    if (wr(fd, BB, BL) == 0)
      c->busy = 0;
    return;
  }
  if (wr(fd, SH, sizeof SH - 1) < 0)
    return;
  c->sent = 0;
  c->due = now();
  push2(fd);
}

static void nextchunk(int fd) {
  C *c = cs[fd];
  char o[1200];
  int n;
  if (c->sent < NCH) {
    n = mkchunk(o, now(), 0);
    c->sent++;
    if (wr(fd, o, n) < 0)
      return;
    push2(fd);
  } else {
    n = mkchunk(o, 0, 1);
    n += sprintf(o + n, "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n");
    c->busy = 0;
    wr(fd, o, n);
  }
}

static void fire(Q *e) {
  C *c = cs[e->fd];
  if (!c || c->gen != e->gen)
    return;
  if (e->kind == 0) {
    c->busy = 0;
    wr(e->fd, JR, JL);
  } else if (e->kind == 1)
    startsse(e->fd);
  else
    nextchunk(e->fd);
}

static void handle(int fd) {
  C *c = cs[fd]; // full request in c->b[0..need)
  c->b[c->len] = 0;
  int st = memmem(c->b, c->need, "\"stream\":true", 13) != NULL;
  c->fast = FD == 0 && memmem(c->b, c->need, "\"FAST\"", 6) != NULL;
  int rest = c->len - c->need;
  if (rest > 0)
    memmove(c->b, c->b + c->need, rest);
  c->len = rest;
  c->need = 0;
  c->busy = 1;
  if (FD) {
    Q *e = &q1[t1++ & (QN - 1)];
    e->at = now() + FD;
    e->fd = fd;
    e->gen = c->gen;
    e->kind = st;
    return;
  }
  if (st)
    startsse(fd);
  else {
    c->busy = 0;
    wr(fd, JR, JL);
  }
}

static void rd(int fd) {
  C *c = cs[fd];
  if (c->cap - c->len < RB / 2) {
    c->cap *= 2;
    c->b = realloc(c->b, c->cap);
  }
  int r = read(fd, c->b + c->len, c->cap - 1 - c->len);
  if (r <= 0) {
    if (r < 0 && errno == EAGAIN)
      return;
    cl(fd);
    return;
  }
  c->len += r;
  if (!c->need) {
    char *e = memmem(c->b, c->len, "\r\n\r\n", 4);
    if (!e)
      return;
    int hl = e - c->b + 4;
    c->b[c->len] = 0;
    int L = 0;
    char sv = *e;
    *e = 0;
    char *p = strcasestr(c->b, "content-length:");
    int ch = !p && strcasestr(c->b, "chunked");
    *e = sv;
    if (p)
      L = atoi(p + 15);
    if (ch) {
      char *z = memmem(c->b + hl, c->len - hl, "\r\n0\r\n\r\n", 7);
      if (!z)
        return;
      L = z + 7 - (c->b + hl);
    }
    c->need = hl + L;
  }
  if (c->len >= c->need)
    handle(fd);
}

int main(int a, char **v) {
  signal(SIGPIPE, SIG_IGN);
  struct rlimit rl = {60000, 60000};
  setrlimit(RLIMIT_NOFILE, &rl);
  int port = atoi(v[1]);
  if (a > 2)
    NCH = atoi(v[2]);
  if (a > 3)
    IV = atoi(v[3]);
  if (a > 4)
    FD = atoi(v[4]);
  if (a > 5)
    BATCH = atoi(v[5]);
  const char *body =
      "{\"id\":\"chatcmpl-A1b2C3d4E5F6G7H8\",\"object\":\"chat.completion\",\"created\":1731600000,\"model\":"
      "\"mock-1\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"The quick "
      "brown fox jumps over the lazy dog. A gateway forwards this answer unchanged and reads the usage block "
      "to settle the credit reservation that it made before it sent the request "
      "upstream.\",\"refusal\":null},\"logprobs\":null,\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_"
      "tokens\":57,\"completion_tokens\":38,\"total_tokens\":95,\"prompt_tokens_details\":{\"cached_tokens\":"
      "0,\"audio_tokens\":0}},\"service_tier\":\"default\",\"system_fingerprint\":\"fp_abc123\"}";
  JL = sprintf(JR,
               "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nx-request-id: "
               "req_0123456789abcdef\r\nContent-Length: %d\r\n\r\n%s",
               (int)strlen(body), body);
  BB = malloc(NCH * 400 + 4096);
  BL = sprintf(BB, "%s", SH);
  for (int i = 0; i < NCH; i++)
    BL += mkchunk(BB + BL, 0, 0);
  BL += mkchunk(BB + BL, 0, 1);
  BL += sprintf(BB + BL, "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n");
  int ls = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
  setsockopt(ls, SOL_SOCKET, SO_REUSEADDR, &one, 4);
  struct sockaddr_in sa = {
      .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (bind(ls, (void *)&sa, sizeof sa)) {
    perror("bind");
    return 1;
  }
  listen(ls, 4096);
  ep = epoll_create1(0);
  struct epoll_event ev = {.events = EPOLLIN, .data.fd = ls}, evs[512];
  epoll_ctl(ep, EPOLL_CTL_ADD, ls, &ev);
  for (;;) {
    int to = -1;
    if (h1 != t1 || h2 != t2) {
      uint64_t n = now(), d = ~0ull;
      if (h1 != t1) {
        uint64_t x = q1[h1 & (QN - 1)].at;
        d = x > n ? x - n : 0;
      }
      if (h2 != t2) {
        uint64_t x = q2[h2 & (QN - 1)].at;
        x = x > n ? x - n : 0;
        if (x < d)
          d = x;
      }
      to = (d + 999) / 1000;
    }
    int n = epoll_wait(ep, evs, 512, to);
    for (int i = 0; i < n; i++) {
      int fd = evs[i].data.fd;
      if (fd == ls) {
        int c;
        while ((c = accept4(ls, 0, 0, SOCK_NONBLOCK)) >= 0) {
          setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &one, 4);
          if (!cs[c]) {
            cs[c] = calloc(1, sizeof(C));
            cs[c]->b = malloc(RB);
            cs[c]->cap = RB;
          }
          cs[c]->len = cs[c]->need = cs[c]->busy = 0;
          cs[c]->gen++;
          struct epoll_event e = {.events = EPOLLIN, .data.fd = c};
          epoll_ctl(ep, EPOLL_CTL_ADD, c, &e);
        }
      } else
        rd(fd);
    }
    uint64_t t = now();
    unsigned e1 = t1;
    while (h1 != e1 && q1[h1 & (QN - 1)].at <= t) {
      Q e = q1[h1++ & (QN - 1)];
      fire(&e);
    }
    unsigned e2 = t2;
    while (h2 != e2 && q2[h2 & (QN - 1)].at <= t) {
      Q e = q2[h2++ & (QN - 1)];
      fire(&e);
    }
  }
}
