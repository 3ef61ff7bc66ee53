package bench

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/bench/monotime"
	"github.com/getorprime/getorprime/internal/proxy"
	"github.com/getorprime/getorprime/internal/redisembed"
	"github.com/getorprime/getorprime/internal/redisstat"
)

// What is taken of a server: connections of all workers together, time to answer at first, and time to clean up behind us.
const (
	pingBound      = 10 * time.Second
	maxConnections = 4096
	cleanBound     = 30 * time.Second
	scanCount      = 1000
)

// server is the Redis under the bench, and the namespace in it that is ours.
type server struct {
	url       string
	namespace string
	admin     *redis.Client
	embedded  *redisembed.Server // nil for a server given by URL
}

// openServer connects to the server at rawURL, or starts one if it is empty, and chooses a namespace that nobody else uses.
func openServer(ctx context.Context, rawURL string) (*server, error) {
	s := &server{url: rawURL, namespace: newNamespace()}
	if rawURL == "" {
		embedded, err := redisembed.Start()
		if err != nil {
			return nil, fmt.Errorf("bench: cannot start the embedded server: %w", err)
		}
		s.embedded, s.url = embedded, "redis://"+embedded.Addr()
	}
	opts, err := clientOptions(s.url, 1)
	if err != nil {
		return nil, err
	}
	opts.ContextTimeoutEnabled = true
	s.admin = redis.NewClient(opts)
	if err := s.ping(ctx); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func (s *server) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pingBound)
	defer cancel()
	if err := s.admin.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("bench: no answer from %s: %w", s, err)
	}
	return nil
}

func newNamespace() string {
	var b [8]byte
	rand.Read(b[:])
	return "prime-bench:" + hex.EncodeToString(b[:]) + ":"
}

// String says what the server is, without its password.
func (s *server) String() string {
	if s.embedded != nil {
		return "embedded Redis (miniredis), in the process of the bench"
	}
	return "Redis at " + s.admin.Options().Addr
}

// behindProxy starts a proxy to the server and returns it with the URL that leads through it.
func (s *server) behindProxy() (*proxy.Proxy, string, error) {
	u, err := url.Parse(s.url)
	if err != nil || u.Scheme != "redis" {
		return nil, "", fmt.Errorf("bench: this scenario needs a server at redis://, without TLS: its connections lead through a proxy")
	}
	p, err := proxy.New(s.admin.Options().Addr)
	if err != nil {
		return nil, "", fmt.Errorf("bench: %w", err)
	}
	u.Host = p.Addr()
	return p, u.String(), nil
}

// watchCommands begins to count the commands that the server executes, for whomever. The function returned says how many they were, nil
// if the server does not count, and how many in each step.
func (s *server) watchCommands(ctx context.Context) func() (*int64, []int64) {
	ctx, stop := context.WithCancel(ctx)
	before, err := redisstat.CommandCount(ctx, s.admin)
	if err != nil {
		return func() (*int64, []int64) { stop(); return nil, nil }
	}
	var steps []int64
	last := before
	look := func() {
		if now, err := redisstat.CommandCount(context.WithoutCancel(ctx), s.admin); err == nil {
			steps, last = append(steps, now-last), now
		}
	}
	var looking sync.WaitGroup
	looking.Go(func() {
		for monotime.Sleep(ctx, step) == nil {
			look()
		}
	})
	return func() (*int64, []int64) {
		stop()
		looking.Wait()
		look()
		n := last - before
		return &n, steps
	}
}

// close deletes what the bench left in the server and disconnects. It does so when ctx has ended, too.
func (s *server) close(ctx context.Context) error {
	var err error
	if s.embedded == nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanBound)
		defer cancel()
		if err = s.clean(ctx); err != nil {
			err = fmt.Errorf("bench: keys %s* are left to expire: %w", s.namespace, err)
		}
	}
	return errors.Join(err, s.stop())
}

func (s *server) stop() error {
	err := s.admin.Close()
	if s.embedded != nil {
		s.embedded.Close()
	}
	return err
}

// clean deletes the keys of the namespace, pass by pass until one finds none: a command that a killed worker had sent may still be
// executed after the first.
func (s *server) clean(ctx context.Context) error {
	for {
		found, err := s.cleanPass(ctx)
		if err != nil || found == 0 {
			return err
		}
	}
}

func (s *server) cleanPass(ctx context.Context) (found int, err error) {
	var cursor uint64
	for {
		keys, next, err := s.admin.Scan(ctx, cursor, s.namespace+"*", scanCount).Result()
		if err != nil {
			return found, err
		}
		if len(keys) > 0 {
			if err := s.admin.Unlink(ctx, keys...).Err(); err != nil {
				return found, err
			}
		}
		found += len(keys)
		if cursor = next; cursor == 0 {
			return found, nil
		}
	}
}

// clientOptions reads a Redis URL for one of n processes, which share [maxConnections] unless the URL says pool_size. Its errors do not
// repeat the URL, which may hold a password.
func clientOptions(rawURL string, n int) (*redis.Options, error) {
	opts, err := redis.ParseURL(rawURL)
	var urlErr *url.Error
	if errors.As(err, &urlErr) {
		err = urlErr.Err
	}
	if err != nil {
		return nil, fmt.Errorf("not a URL of a Redis server, as in redis://user:password@host:6379/0: %w", err)
	}
	if opts.PoolSize == 0 {
		opts.PoolSize = min(32, maxConnections/max(n, 1))
	}
	return opts, nil
}
