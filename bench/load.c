// Load generator: one-thread epoll HTTP/1.1 keep-alive client. Prints one JSON line.
// usage: load PORT bodyfile -c conns -d secs [-w warm_secs] [-r rate] [-h headerfile] [-p path] [-m method] [-k keyfile] [-T] [-n total]
//             [-R ramp_secs]
//  An empty body file sends no body.  -k: the calls take turns with the keys of the file, one a line, as bearer tokens.
//  -r 0: closed loop.  -r N: N req/s in all, latency counted from the scheduled moment (no coordinated omission).
//  -T: read "t=<us>" stamps from the body (chunk delay).  -R: spread connection starts over ramp (for many open streams)
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

#define KEYS_MAX 10000

typedef struct {
  int fd;
  int st; /*0 idle 1 headers 2 body*/
  int hl;
  char h[8192];
  int chunked;
  long left;
  int cs;
  uint64_t t0;
  uint64_t tf;
  long body;
  int m;
  uint64_t num;
  int close;
  int status;
  int closing;
} C;

static uint64_t now() {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000ull + t.tv_nsec / 1000;
}

static C *cs;
static int NC = 1, ep, port, TS = 0;
static char **reqs;
static int *rls, nreq = 1;
static unsigned turn;
static uint64_t t0m, tend;
static double rate = 0, ramp = 0;
static long total = 0, started = 0;

typedef struct {
  uint32_t *a;
  long n, cap;
} V;

static V lat, ttf, chd;

static void pu(V *v, uint32_t x) {
  if (v->n == v->cap) {
    v->cap = v->cap ? v->cap * 2 : 65536;
    v->a = realloc(v->a, v->cap * 4);
  }
  v->a[v->n++] = x;
}

static int cmp(const void *a, const void *b) {
  uint32_t x = *(uint32_t *)a, y = *(uint32_t *)b;
  return x < y ? -1 : x > y;
}

static uint32_t pc(V *v, double p) {
  if (!v->n)
    return 0;
  long i = v->n * p;
  if (i >= v->n)
    i = v->n - 1;
  return v->a[i];
}

static long done_, err, bytes, non200;
static uint64_t *sched;
static unsigned sh, stl;

static int conn(C *c) {
  c->fd = socket(AF_INET, SOCK_STREAM, 0);
  int one = 1;
  setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, 4);
  struct sockaddr_in sa = {
      .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (connect(c->fd, (void *)&sa, sizeof sa)) {
    perror("connect");
    close(c->fd);
    c->fd = -1;
    return -1;
  }
  struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
  epoll_ctl(ep, EPOLL_CTL_ADD, c->fd, &e);
  return 0;
}

static void send_(C *c, uint64_t at) {
  if (c->fd < 0 && conn(c) < 0) {
    err++;
    return;
  }
  c->st = 1;
  c->hl = 0;
  c->body = 0;
  c->m = 0;
  c->tf = 0;
  c->t0 = at;
  started++;
  int n = 0, k = turn++ % nreq, rl = rls[k];
  char *req = reqs[k];
  while (n < rl) {
    int r = write(c->fd, req + n, rl - n);
    if (r < 0) {
      close(c->fd);
      c->fd = -1;
      c->st = 0;
      err++;
      return;
    }
    n += r;
  }
}

static void fin(C *c) {
  uint64_t n = now();
  c->st = 0;
  if (c->status != 200)
    non200++;
  if (n >= t0m && n < tend + (total ? 1u << 30 : 0)) {
    done_++;
    bytes += c->body;
    pu(&lat, n - c->t0);
    pu(&ttf, c->tf - c->t0);
  }
  if (c->close) {
    close(c->fd);
    c->fd = -1;
  }
  if (total ? (ramp <= 0 && started < total) : n < tend) {
    if (rate <= 0)
      send_(c, n);
    else if (sh != stl)
      send_(c, sched[sh++ & 0xfffff]);
  }
}

static void scan(C *c, const char *b, long n) {
  c->body += n;
  if (!TS)
    return;
  uint64_t t = now();
  for (long i = 0; i < n; i++) {
    char x = b[i];
    switch (c->m) {
    case 0:
      if (x == 't')
        c->m = 1;
      break;
    case 1:
      c->m = x == '=' ? 2 : (x == 't' ? 1 : 0);
      c->num = 0;
      break;
    default:
      if (x >= '0' && x <= '9') {
        c->num = c->num * 10 + x - '0';
        c->m++;
        if (c->m == 18) {
          // Of streams that all stand open: neither those that are still being begun nor the ends count.
          if (t >= t0m + (uint64_t)(ramp * 1e6) && !(total && done_))
            pu(&chd, t > c->num ? t - c->num : 0);
          c->m = 0;
        }
      } else
        c->m = 0;
    }
  }
}

static int feed(C *c, char *b, long n) { // returns 1 if response finished
  while (n > 0) {
    if (c->st == 1) {
      long k = n;
      if (c->hl + k > 8191)
        k = 8191 - c->hl;
      memcpy(c->h + c->hl, b, k);
      int old = c->hl;
      c->hl += k;
      c->h[c->hl] = 0;
      char *e = strstr(c->h + (old > 3 ? old - 3 : 0), "\r\n\r\n");
      if (!e) {
        b += k;
        n -= k;
        continue;
      }
      int H = e - c->h + 4;
      long used = H - old;
      b += used;
      n -= used;
      e[2] = 0;
      c->status = atoi(c->h + 9);
      c->close = strcasestr(c->h, "connection: close") != 0;
      char *p = strcasestr(c->h, "content-length:");
      c->chunked = strcasestr(c->h, "transfer-encoding: chunked") != 0;
      c->left = c->chunked ? 0 : (p ? atol(p + 15) : -1);
      c->cs = 0;
      c->st = 2;
      c->tf = now();
      if (!c->chunked && c->left == 0) {
        return 1;
      }
      continue;
    }
    if (!c->chunked) {
      long k = n;
      if (c->left >= 0 && k > c->left)
        k = c->left;
      scan(c, b, k);
      b += k;
      n -= k;
      if (c->left >= 0) {
        c->left -= k;
        if (!c->left)
          return 1;
      }
      continue;
    }
    // chunked: cs 0 size, 1 size-ext/CR, 2 data, 3 CR after, 4 LF after, 5 trailer
    if (c->cs == 2) {
      long k = n < c->left ? n : c->left;
      scan(c, b, k);
      b += k;
      n -= k;
      c->left -= k;
      if (!c->left)
        c->cs = 3;
      continue;
    }
    char x = *b++;
    n--;
    if (c->cs == 0) {
      if (x >= '0' && x <= '9')
        c->left = c->left * 16 + x - '0';
      else if ((x | 32) >= 'a' && (x | 32) <= 'f')
        c->left = c->left * 16 + (x | 32) - 'a' + 10;
      else if (x == '\n') {
        c->cs = c->left ? 2 : 5;
        c->hl = 0;
      } else if (x == ';')
        c->cs = 1;
    } else if (c->cs == 1) {
      if (x == '\n')
        c->cs = c->left ? 2 : 5, c->hl = 0;
    } else if (c->cs == 3)
      c->cs = 4;
    else if (c->cs == 4) {
      c->cs = 0;
      c->left = 0;
    } else if (c->cs == 5) {
      if (x == '\n') {
        if (c->hl == 0)
          return 1;
        c->hl = 0;
      } else if (x != '\r')
        c->hl++;
    }
  }
  return 0;
}

int main(int a, char **v) {
  signal(SIGPIPE, SIG_IGN);
  struct rlimit r = {60000, 60000};
  setrlimit(RLIMIT_NOFILE, &r);
  port = atoi(v[1]);
  char *bf = v[2], *hf = 0, *path = "/v1/chat/completions", *method = "POST", *kf = 0;
  static char keys[KEYS_MAX][128];
  int nkeys = 0;
  double d = 2, w = 0.5;
  for (int i = 3; i < a; i++) {
    if (!strcmp(v[i], "-c"))
      NC = atoi(v[++i]);
    else if (!strcmp(v[i], "-d"))
      d = atof(v[++i]);
    else if (!strcmp(v[i], "-w"))
      w = atof(v[++i]);
    else if (!strcmp(v[i], "-r"))
      rate = atof(v[++i]);
    else if (!strcmp(v[i], "-h"))
      hf = v[++i];
    else if (!strcmp(v[i], "-p"))
      path = v[++i];
    else if (!strcmp(v[i], "-m"))
      method = v[++i];
    else if (!strcmp(v[i], "-k"))
      kf = v[++i];
    else if (!strcmp(v[i], "-T"))
      TS = 1;
    else if (!strcmp(v[i], "-n"))
      total = atol(v[++i]);
    else if (!strcmp(v[i], "-R"))
      ramp = atof(v[++i]);
  }
  static char B[4 << 20], H[8192];
  FILE *f = fopen(bf, "r");
  int bl = fread(B, 1, sizeof B, f);
  int hl = 0;
  if (hf && *hf) {
    f = fopen(hf, "r");
    hl = fread(H, 1, sizeof H - 1, f);
  }
  H[hl] = 0;
  if (kf) {
    f = fopen(kf, "r");
    nkeys = 0;
    while (nkeys < KEYS_MAX && fscanf(f, "%127s", keys[nkeys]) == 1)
      nkeys++;
    nreq = nkeys;
  }
  reqs = malloc(nreq * sizeof *reqs);
  rls = malloc(nreq * sizeof *rls);
  for (int i = 0; i < nreq; i++) {
    char *p = reqs[i] = malloc(bl + hl + 1024);
    p += sprintf(p, "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept: */*\r\nUser-Agent: bench/1\r\n%s", method,
                 path, port, H);
    if (kf)
      p += sprintf(p, "Authorization: Bearer %s\r\n", keys[i]);
    if (bl)
      p += sprintf(p, "Content-Type: application/json\r\nContent-Length: %d\r\n", bl);
    p += sprintf(p, "\r\n");
    memcpy(p, B, bl);
    rls[i] = p + bl - reqs[i];
  }
  ep = epoll_create1(0);
  cs = calloc(NC, sizeof(C));
  for (int i = 0; i < NC; i++) {
    cs[i].fd = -1;
  }
  sched = malloc(8 << 20);
  uint64_t s = now();
  t0m = s + w * 1e6;
  tend = t0m + d * 1e6;
  if (total) {
    t0m = s;
  }
  uint64_t hard = total ? s + (d + 60) * 1e6 : tend + 5000000;
  int opened = 0;
  long nsent = 0;
  struct epoll_event evs[512];
  static char buf[262144];
  if (ramp <= 0 && rate <= 0)
    for (; opened < NC; opened++)
      send_(&cs[opened], now());
  int rr = 0;
  for (;;) {
    uint64_t n = now();
    int to = 100;
    if (ramp > 0 && rate <= 0 && opened < NC) {
      while (opened < NC && s + (uint64_t)(ramp * 1e6 * opened / NC) <= n) {
        send_(&cs[opened], n);
        opened++;
      }
      to = 1;
    }
    if (rate > 0 && n < tend) {
      for (;;) {
        uint64_t at = s + (uint64_t)(nsent * 1e6 / rate);
        n = now();
        if (at > n) {
          uint64_t k = at - n;
          to = 0;
          if (k > 60) {
            struct timespec ts = {0, (k > 1000000 ? 1000000 : k) * 1000 - 40000};
            struct epoll_event tmp;
            (void)tmp;
            int g = epoll_pwait2(ep, evs, 512, &ts, 0);
            for (int i = 0; i < g; i++) {
              C *c = evs[i].data.ptr;
              int q = read(c->fd, buf, sizeof buf);
              if (q <= 0) {
                close(c->fd);
                c->fd = -1;
                if (c->st)
                  err++;
                c->st = 0;
              } else if (c->st && feed(c, buf, q))
                fin(c);
            }
            continue;
          } else {
            continue;
          }
        }
        nsent++;
        C *fr = 0;
        for (int i = 0; i < NC; i++) {
          C *c = &cs[(rr + i) % NC];
          if (!c->st) {
            fr = c;
            rr = (rr + i + 1) % NC;
            break;
          }
        }
        if (fr)
          send_(fr, at);
        else
          sched[stl++ & 0xfffff] = at;
        break;
      }
      to = 0;
    }
    int g = epoll_wait(ep, evs, 512, to);
    for (int i = 0; i < g; i++) {
      C *c = evs[i].data.ptr;
      if (c->fd < 0)
        continue;
      int q = read(c->fd, buf, sizeof buf);
      if (q <= 0) {
        close(c->fd);
        c->fd = -1;
        if (c->st) {
          if (c->st == 2 && !c->chunked && c->left < 0) {
            c->close = 0;
            fin(c);
          } else {
            err++;
            c->st = 0;
            if (now() < tend && rate <= 0 && !total)
              send_(c, now());
          }
        }
        continue;
      }
      if (c->st && feed(c, buf, q))
        fin(c);
    }
    n = now();
    if (total) {
      if (done_ + err >= total || n > hard)
        break;
    } else if (n >= tend)
      break;
  }
  double el = total ? (now() - s) / 1e6 : d;
  qsort(lat.a, lat.n, 4, cmp);
  qsort(ttf.a, ttf.n, 4, cmp);
  uint32_t quarters[4] = {0};
  for (int i = 0; i < 4; i++) {
    V part = {malloc((chd.n / 4 + 1) * 4), chd.n / 4, 0};
    memcpy(part.a, chd.a + i * part.n, part.n * 4);
    qsort(part.a, part.n, 4, cmp);
    quarters[i] = pc(&part, .99);
    free(part.a);
  }
  qsort(chd.a, chd.n, 4, cmp);
  printf("{\"rps\":%.1f,\"n\":%ld,\"err\":%ld,\"non200\":%ld,\"bytes_per\":%.1f,\"p50\":%u,\"p90\":%u,"
         "\"p99\":%u,\"max\":%u,\"ttfb50\":%u,\"ttfb99\":%u,\"chunks\":%ld,\"cd50\":%u,\"cd90\":%u,\"cd99\":%"
         "u,\"cd999\":%u,\"cdmax\":%u,\"cdq\":[%u,%u,%u,%u],\"started\":%ld}\n",
         done_ / el, done_, err, non200, done_ ? (double)bytes / done_ : 0, pc(&lat, .5), pc(&lat, .9),
         pc(&lat, .99), pc(&lat, 1), pc(&ttf, .5), pc(&ttf, .99), chd.n, pc(&chd, .5), pc(&chd, .9),
         pc(&chd, .99), pc(&chd, .999), pc(&chd, 1), quarters[0], quarters[1], quarters[2], quarters[3], started);
  return 0;
}
