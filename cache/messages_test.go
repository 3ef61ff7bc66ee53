package cache_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/getorprime/getorprime/cache"
)

// TestErrorsSayWhereAndWhatToDo: each error that this package makes of a call
// names the keyspace and, where there is one, the remedy.
func TestErrorsSayWhereAndWhatToDo(t *testing.T) {
	inBubble(t, func(b *bubble) {
		far := open(b, b.client(), nil)
		held := space(b, far, "waits:", constant("v"), nil)
		hold := make(chan struct{})
		call := calling(func() (string, error) {
			return held.GetOrLoad(b.Context(), "a", func(context.Context, string) (string, error) { <-hold; return "v", nil })
		})
		synctest.Wait()

		c := open(b, b.client(), nil)
		get := func(k *cache.Keyspace[string]) error {
			_, err := k.GetOrPrime(b.Context(), "a")
			return err
		}
		hangs := func(ctx context.Context, _ string) (string, error) { <-ctx.Done(); return "", ctx.Err() }
		var own *cache.Keyspace[string]
		own = space(b, c, "own:", func(ctx context.Context, id string) (string, error) { return own.GetOrPrime(ctx, id) }, nil)
		tests := []struct {
			name string
			err  error
			is   error
			says []string
		}{
			{"no loader", get(space[string](b, c, "none:", nil, nil)), cache.ErrNoLoader, []string{`"none:"`, "register one", "GetOrLoad"}},
			{"re-entrance", get(own), cache.ErrReentrant, []string{`"own:"`}},
			{"load timeout", get(space(b, c, "slow:", hangs, &cache.Policy{LoadTimeout: time.Second})), cache.ErrLoadTimeout, []string{`"slow:"`, "1s"}},
			{"wait timeout", get(space(b, c, "waits:", constant("v"), &cache.Policy{WaitTimeout: time.Second})), cache.ErrWaitTimeout, []string{`"waits:"`, "1s"}},
		}
		for _, tt := range tests {
			if !errors.Is(tt.err, tt.is) || !strings.HasPrefix(tt.err.Error(), "cache: ") {
				b.Errorf("%s: got %v, want one of this package that is %v", tt.name, tt.err, tt.is)
				continue
			}
			for _, part := range tt.says {
				if !strings.Contains(tt.err.Error(), part) {
					b.Errorf("%s: got %q, want it to say %s", tt.name, tt.err, part)
				}
			}
		}
		close(hold)
		<-call
	})
}
