package cache_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/codec"
	"github.com/getorprime/getorprime/internal/redistest"
)

// The benchmarks here measure ratios to plain go-redis on a real server: each
// round runs the same number of calls of one and of the other, one after the
// other, and what is reported is the median over the rounds. Take some rounds:
//
//	go test -run '^$' -bench Ratio -benchtime 41x ./cache
//
// An A/A control, plain against plain, says how far to trust them.

// opsPerRound is how many calls each side makes in a round.
const opsPerRound = 400

// contest is the two sides of a ratio.
type contest struct {
	plain, ours, control func(ctx context.Context, key string) error
}

func newContest(b *testing.B, load time.Duration) *contest {
	b.Helper()
	server := redistest.Start(b)
	value := make([]byte, 300)
	loading := func(context.Context, string) ([]byte, error) {
		if load > 0 {
			time.Sleep(load)
		}
		return value, nil
	}
	aside := func(client *redis.Client) func(context.Context, string) error {
		return func(ctx context.Context, key string) error {
			err := client.Get(ctx, key).Err()
			if !errors.Is(err, redis.Nil) {
				return err
			}
			v, _ := loading(ctx, key)
			return client.Set(ctx, key, v, time.Minute).Err()
		}
	}
	k := space(b, open(b, server.Client(b), nil), "", loading, &cache.Policy{Codec: codec.Raw{}, EarlyRefresh: -1})
	return &contest{
		plain:   aside(server.Client(b)),
		control: aside(server.Client(b)),
		ours: func(ctx context.Context, key string) error {
			_, err := k.GetOrPrime(ctx, key)
			return err
		},
	}
}

// run makes calls of side with the given number of callers and returns how long
// they took.
func (c *contest) run(b *testing.B, callers int, side func(context.Context, string) error, key func(int) string) time.Duration {
	b.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	start := time.Now()
	for range callers {
		wg.Go(func() {
			for i := next.Add(1); i <= opsPerRound; i = next.Add(1) {
				if err := side(b.Context(), key(int(i))); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}

// ratio reports the medians of ours/plain and of control/plain.
func (c *contest) ratio(b *testing.B, callers int, key func(round int, side string) func(int) string) {
	b.Helper()
	var ratios, controls []float64
	for round := 0; b.Loop(); round++ {
		plain := c.run(b, callers, c.plain, key(round, "plain"))
		ours := c.run(b, callers, c.ours, key(round, "ours"))
		control := c.run(b, callers, c.control, key(round, "control"))
		ratios = append(ratios, float64(ours)/float64(plain))
		controls = append(controls, float64(control)/float64(plain))
	}
	b.ReportMetric(median(ratios), "×plain")
	b.ReportMetric(median(controls), "×control")
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// BenchmarkRatioMiss reads keys that are not there, nobody contending.
func BenchmarkRatioMiss(b *testing.B) {
	for _, load := range []time.Duration{0, time.Millisecond} {
		for _, callers := range []int{1, 8} {
			b.Run(fmt.Sprintf("load=%v/callers=%d", load, callers), func(b *testing.B) {
				newContest(b, load).ratio(b, callers, func(round int, side string) func(int) string {
					return func(i int) string { return fmt.Sprintf("%s-%d-%d", side, round, i) }
				})
			})
		}
	}
}

// BenchmarkRatioHit reads keys that are there.
func BenchmarkRatioHit(b *testing.B) {
	for _, callers := range []int{1, 8} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			c := newContest(b, 0)
			keys := func(_ int, side string) func(int) string {
				return func(i int) string { return fmt.Sprintf("%s-%d", side, i) }
			}
			c.run(b, callers, c.plain, keys(0, "plain"))
			c.run(b, callers, c.ours, keys(0, "ours"))
			c.run(b, callers, c.control, keys(0, "control"))
			c.ratio(b, callers, keys)
		})
	}
}
