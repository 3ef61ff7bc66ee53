package lease_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/getorprime/getorprime/internal/lease"
)

func TestMaxHoldEndsTheRenewing(t *testing.T) {
	inBubble(t, func(t *testing.T, k *lease.Keeper, b *backend) {
		g := b.grant(ttl)
		g.MaxHold = 2500 * time.Millisecond
		defer k.Keep(g).Stop()
		time.Sleep(time.Minute)
		if got, want := b.renewals(), []time.Duration{time.Second, 2 * time.Second}; !slices.Equal(got, want) {
			t.Errorf("renewed at %v, want %v", got, want)
		}
	})
}

func TestOverIsToldOnce(t *testing.T) {
	tests := []struct {
		name    string
		ttl     time.Duration
		maxHold time.Duration
		leased  bool
	}{
		{"between two renewals", ttl, 2500 * time.Millisecond, true},
		{"before the first renewal", ttl, 300 * time.Millisecond, true},
		{"at a renewal", ttl, 2 * time.Second, true},
		{"without a lease", time.Hour, 2500 * time.Millisecond, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, k *lease.Keeper, b *backend) {
				g := b.grant(tt.ttl)
				g.MaxHold = tt.maxHold
				if !tt.leased {
					g.TTL = 0
				}
				var over []time.Duration
				g.Holder.(*holder).over = func() { over = append(over, time.Since(b.start)) }
				held := k.Keep(g)
				time.Sleep(time.Minute)
				synctest.Wait()
				if want := []time.Duration{tt.maxHold}; !slices.Equal(over, want) {
					t.Errorf("over at %v, want %v", over, want)
				}
				for _, at := range b.renewals() {
					if at >= tt.maxHold {
						t.Errorf("renewed at %v, want never from %v on", at, tt.maxHold)
					}
				}
				held.Stop()
			})
		})
	}
}

// TestOverAfterALoss minds the holder's time though the lease is lost.
func TestOverAfterALoss(t *testing.T) {
	tests := []struct {
		name     string
		validity time.Duration
		reply    func(int) (bool, error)
	}{
		{"not held", 0, func(int) (bool, error) { return false, nil }},
		{"no longer valid", 1500 * time.Millisecond, func(int) (bool, error) { return false, errRedis }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, k *lease.Keeper, b *backend) {
				b.reply = tt.reply
				g := b.grant(ttl)
				g.Validity, g.MaxHold = tt.validity, 10*time.Second
				var over []time.Duration
				g.Holder.(*holder).over = func() { over = append(over, time.Since(b.start)) }
				held := k.Keep(g)
				time.Sleep(5 * time.Second)
				renewals := len(b.renewals())
				if got := b.losses(); len(got) != 1 || k.Len() != 0 {
					t.Errorf("lost at %v, %d leases kept; want one loss and none kept", got, k.Len())
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if want := []time.Duration{10 * time.Second}; !slices.Equal(over, want) {
					t.Errorf("over at %v, want %v", over, want)
				}
				if got := b.renewals(); len(got) != renewals || len(b.losses()) != 1 {
					t.Errorf("renewed at %v and lost at %v, want neither after the loss", got, b.losses())
				}
				held.Stop()
			})
		})
	}
}

func TestStopBeforeOver(t *testing.T) {
	inBubble(t, func(t *testing.T, k *lease.Keeper, b *backend) {
		g := b.grant(ttl)
		g.MaxHold = time.Second
		g.Holder.(*holder).over = func() { t.Error("Over was called though the holder had let go") }
		held := k.Keep(g)
		time.Sleep(999 * time.Millisecond)
		held.Stop()
		time.Sleep(time.Minute)
	})
}
