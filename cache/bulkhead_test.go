package cache_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/getorprime/getorprime/cache"
)

// TestBulkheadServesFirstComeFirstServed has loads queue for the one place of
// their keyspace, or of their cache.
func TestBulkheadServesFirstComeFirstServed(t *testing.T) {
	for _, whose := range []string{"keyspace", "cache"} {
		t.Run(whose, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				opts, policy := &cache.Options{}, &cache.Policy{}
				if whose == "cache" {
					opts.MaxConcurrentLoads = 1
				} else {
					policy.MaxConcurrentLoads = 1
				}
				c := open(b, b.client(), opts)
				var mu sync.Mutex
				var order []string
				load := func(_ context.Context, id string) (string, error) {
					mu.Lock()
					order = append(order, id)
					mu.Unlock()
					time.Sleep(time.Second)
					return id, nil
				}
				k := space(b, c, "k:", load, policy)
				var came []string
				var wg sync.WaitGroup
				for i := range 10 {
					id := fmt.Sprint(i)
					came = append(came, id)
					wg.Go(func() { want(b, "caller", id)(k.GetOrPrime(b.Context(), id)) })
					synctest.Wait()
				}
				wg.Wait()
				if !slices.Equal(order, came) {
					b.Errorf("loaded in the order %v, want %v", order, came)
				}
			})
		})
	}
}

// TestAHungLoadLeavesItsPlace when it is given up.
func TestAHungLoadLeavesItsPlace(t *testing.T) {
	inBubble(t, func(b *bubble) {
		awake := make(chan struct{})
		_, k := openSpace(b, b.client(), func(_ context.Context, id string) (string, error) {
			if id == "slow" {
				<-awake
			}
			return id, nil
		}, &cache.Policy{MaxConcurrentLoads: 1, LoadTimeout: 3 * time.Second})
		start := time.Now()
		slow := calling(func() (string, error) { return k.GetOrPrime(b.Context(), "slow") })
		time.Sleep(time.Millisecond)
		want(b, "who waited for the place", "quick")(k.GetOrPrime(b.Context(), "quick"))
		if took := time.Since(start); took != 3*time.Second {
			b.Errorf("took %v, want until the slow load was given up, 3s", took)
		}
		if got := <-slow; !errors.Is(got.err, cache.ErrLoadTimeout) {
			b.Errorf("slow: got %v, want ErrLoadTimeout", got.err)
		}
		close(awake)
	})
}

// TestOverloaded fails loads that found no place in time, and gives their leases
// back.
func TestOverloaded(t *testing.T) {
	inBubble(t, func(b *bubble) {
		c := open(b, b.client(), &cache.Options{MaxConcurrentLoads: 1})
		slow := space(b, c, "slow:", func(context.Context, string) (string, error) { time.Sleep(time.Minute); return "v", nil }, &cache.Policy{LoadTimeout: 2 * time.Minute})
		quick := space(b, c, "quick:", constant("v"), &cache.Policy{LoadTimeout: 5 * time.Second})
		call := calling(func() (string, error) { return slow.GetOrPrime(b.Context(), "a") })
		synctest.Wait()
		start := time.Now()
		crowd(3, func(int) {
			_, err := quick.GetOrPrime(b.Context(), "a")
			if took := time.Since(start); !errors.Is(err, cache.ErrOverloaded) || took != 5*time.Second || !strings.Contains(err.Error(), `"quick:"`) {
				b.Errorf("got %v after %v, want ErrOverloaded that names the keyspace after 5s", err, took)
			}
		})
		if s := c.Stats(); s.Overloaded != 1 || s.LoadsFailed != 0 || s.LoadsCanceled != 0 {
			b.Errorf("%d overloaded, %d failed, %d cancelled; want 1, 0, 0", s.Overloaded, s.LoadsFailed, s.LoadsCanceled)
		}
		if b.redis.Exists("quick:a") {
			b.Error("the lease of the load that found no place is left behind")
		}
		got := <-call
		want(b, "the slow one", "v")(got.value, got.err)
		want(b, "once there is a place", "v")(quick.GetOrPrime(b.Context(), "a"))
	})
}

// TestQueueingKeepsTheLease queues for as long as two loads take: nobody else may
// take the lease meanwhile.
func TestQueueingKeepsTheLease(t *testing.T) {
	inBubble(t, func(b *bubble) {
		var source source
		policy := &cache.Policy{MaxConcurrentLoads: 1, LoadTimeout: 4 * time.Second}
		c, k := openSpace(b, b.client(), takes(&source, 3500*time.Millisecond), policy)
		_, far := openSpace(b, b.client(), takes(&source, 3500*time.Millisecond), &cache.Policy{WaitTimeout: time.Minute})
		first := calling(func() (int64, error) { return k.GetOrPrime(b.Context(), "first") })
		synctest.Wait()
		second := calling(func() (int64, error) { return k.GetOrPrime(b.Context(), "second") })
		synctest.Wait()
		want(b, "another process", int64(0))(far.GetOrPrime(b.Context(), "second"))
		for _, call := range []<-chan got64{first, second} {
			got := <-call
			want(b, "caller", int64(0))(got.value, got.err)
		}
		source.wantLoads(b, 2)
		if s := c.Stats(); s.LeasesLost+s.StoresRefused != 0 {
			b.Errorf("%d leases lost, %d stores refused; want none", s.LeasesLost, s.StoresRefused)
		}
	})
}

// TestLeavingTheQueue cancels a caller whose load waits for a place.
func TestLeavingTheQueue(t *testing.T) {
	inBubble(t, func(b *bubble) {
		source := newGated()
		c, k := openSpace(b, b.client(), source.load, &cache.Policy{MaxConcurrentLoads: 1})
		first := calling(func() (int64, error) { return k.GetOrPrime(b.Context(), "first") })
		<-source.entered
		ctx, cancel := context.WithCancel(b.Context())
		second := calling(func() (int64, error) { return k.GetOrPrime(ctx, "second") })
		synctest.Wait()
		cancel()
		if got := <-second; !errors.Is(got.err, context.Canceled) {
			b.Errorf("got %v, want the context's error", got.err)
		}
		synctest.Wait()
		if b.redis.Exists("k:second") {
			b.Error("the lease of the load that never began is left behind")
		}
		close(source.leave)
		<-first
		want(b, "later", int64(0))(k.GetOrPrime(b.Context(), "second"))
		source.wantLoads(b, 2)
		if s := c.Stats(); s.Overloaded != 0 {
			b.Errorf("%d overloaded, want 0", s.Overloaded)
		}
	})
}
