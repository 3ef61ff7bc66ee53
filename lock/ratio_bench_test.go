package lock_test

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/redistest"
	"github.com/getorprime/getorprime/lock"
)

// BenchmarkRatioUncontended compares acquiring and releasing a free lock with
// what there is to do at least, SET NX PX and a script that compares and
// deletes, in the same run on a real server. What is reported is the median over
// the rounds; an A/A control says how far to trust it:
//
//	go test -run '^$' -bench Ratio -benchtime 41x ./lock
func BenchmarkRatioUncontended(b *testing.B) {
	server := redistest.Start(b)
	raw, control := rawLock(server.Client(b)), rawLock(server.Client(b))
	for _, fenced := range []bool{false, true} {
		name := map[bool]string{false: "plain", true: "fenced"}[fenced]
		b.Run(name, func(b *testing.B) {
			locker, err := lock.New(server.Client(b), nil)
			if err != nil {
				b.Fatal(err)
			}
			defer locker.Close(context.Background())
			opts := &lock.AcquireOptions{Fenced: fenced}
			ours := func(ctx context.Context) error {
				h, err := locker.Acquire(ctx, "bench", opts)
				if err != nil {
					return err
				}
				return h.Release(ctx)
			}
			var ratios, controls []float64
			for b.Loop() {
				base := cycles(b, raw)
				ratios = append(ratios, float64(cycles(b, ours))/float64(base))
				controls = append(controls, float64(cycles(b, control))/float64(base))
			}
			b.ReportMetric(median(ratios), "×raw")
			b.ReportMetric(median(controls), "×control")
			b.ReportMetric(testing.AllocsPerRun(400, func() { ours(b.Context()) }), "ours-allocs")
			b.ReportMetric(testing.AllocsPerRun(400, func() { raw(b.Context()) }), "raw-allocs")
		})
	}
}

func rawLock(client *redis.Client) func(context.Context) error {
	release := redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)
	return func(ctx context.Context) error {
		token := rand.Text()
		ok, err := client.SetNX(ctx, "raw", token, 10*time.Second).Result()
		if err != nil || !ok {
			return errors.Join(err, errors.New("not acquired"))
		}
		return release.Run(ctx, client, []string{"raw"}, token).Err()
	}
}

// cycles acquires and releases a number of times and returns how long that took.
func cycles(b *testing.B, one func(context.Context) error) time.Duration {
	b.Helper()
	start := time.Now()
	for range 300 {
		if err := one(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(start)
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
