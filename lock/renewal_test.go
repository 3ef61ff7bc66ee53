package lock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/proxy"
	"github.com/getorprime/getorprime/internal/redistest"
	"github.com/getorprime/getorprime/lock"
)

// renews reports whether a command runs renew.lua, the only script with one key.
func renews(cmd [][]byte) bool {
	return len(cmd) == 7 && string(cmd[2]) == "1"
}

// TestOneRenewalFails has the first renewal fail in different ways. The next one
// works, and nothing is lost.
func TestOneRenewalFails(t *testing.T) {
	const ttl = 600 * time.Millisecond
	for name, f := range map[string]proxy.Fault{
		"reply lost": proxy.DropReply(), "connection lost": proxy.Late(time.Hour), "too slow": proxy.Delay(ttl / 2), "twice": proxy.Duplicate(ttl / 6),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			p, client := newProxy(t, server.Addr())
			var seen atomic.Int64
			p.OnCommand(func(cmd [][]byte) proxy.Fault {
				if renews(cmd) && seen.Add(1) == 1 {
					return f
				}
				return proxy.Pass()
			})
			h := get(t, open(t, client, &lock.Options{TTL: ttl}), "a", nil)
			renewals(t, server.Client(t), ttl, "lock:{a}")
			if err := h.Err(); err != nil || h.Context().Err() != nil {
				t.Errorf("lost: %v, %v", err, context.Cause(h.Context()))
			}
			if n := seen.Load(); n < 3 {
				t.Errorf("%d renewals in two TTLs, which prove too little", n)
			}
			release(t, h)
		})
	}
}

// lateness tells how late this process gets to act that should at a certain time.
func lateness(at time.Time) <-chan time.Duration {
	late := make(chan time.Duration, 1)
	go func() {
		<-time.After(time.Until(at))
		late <- time.Since(at)
	}()
	return late
}

// TestAllRenewalsFail has Redis be out of reach. The holder's context ends before
// the server lets the lock lapse, unless this machine is too busy to act in time.
func TestAllRenewalsFail(t *testing.T) {
	const ttl = 2 * time.Second
	lose := func([][]byte) proxy.Fault { return proxy.DropReply() }
	for name, fail := range map[string]func(*proxy.Proxy){
		"refused": (*proxy.Proxy).Cut, "silent": (*proxy.Proxy).BlackHole, "unheard": func(p *proxy.Proxy) { p.OnCommand(lose) },
	} {
		for _, holders := range []int{1, 2} {
			t.Run(name+" "+places(holders), func(t *testing.T) {
				t.Parallel()
				server := redistest.Start(t)
				direct := server.Client(t)
				p, client := newProxy(t, server.Addr())
				h := get(t, open(t, client, &lock.Options{TTL: ttl, RedisBudget: time.Second}), "a", &lock.AcquireOptions{Holders: holders})
				fail(p)
				before := time.Now()
				lapses := before.Add(direct.PTTL(t.Context(), "lock:{a}").Val())
				busy := lateness(lapses.Add(-ttl / 200))

				ends(t, h)
				ended := time.Now()
				wantErr(t, "cause", context.Cause(h.Context()), lock.ErrLost)
				wantErr(t, "Err", h.Err(), lock.ErrLost)
				if late := ended.Sub(lapses); late >= 0 && late >= <-busy {
					t.Errorf("the context ended %v after the lock had lapsed", late)
				}
				if early := lapses.Sub(ended); early > ttl/10 {
					t.Errorf("the context ended %v before the lock lapses, want shortly before", early)
				}
				p.Heal()
				p.OnCommand(nil)
				wantErr(t, "Release", h.Release(t.Context()), lock.ErrLost)
			})
		}
	}
}
