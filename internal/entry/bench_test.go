package entry_test

import (
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/entry"
	"github.com/getorprime/getorprime/internal/redistest"
)

// BenchmarkGet compares a hit with the plain command of go-redis.
func BenchmarkGet(b *testing.B) {
	server := redistest.Start(b)
	client := server.Client(b)
	s := entry.NewStore(client, "channel", 500*time.Millisecond)
	h := entry.Header{State: entry.Value, FreshUntil: 1 << 47, HardUntil: 1 << 47}
	if err := client.Set(b.Context(), "k", h.AppendTo(nil), time.Hour).Err(); err != nil {
		b.Fatal(err)
	}
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			if err := client.Get(b.Context(), "k").Err(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("entry", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Get(b.Context(), "k"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("entry, parallel", func(b *testing.B) {
		b.SetParallelism(16)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := s.Get(b.Context(), "k"); err != nil {
					b.Error(err)
				}
			}
		})
	})
}
