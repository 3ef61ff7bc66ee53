package redistest

import (
	"context"
	"net"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/redisembed"
)

// Embedded returns a client for examples, which have no test to end with: its
// server is embedded in the process, and starts when it is first needed.
func Embedded() *redis.Client {
	start := sync.OnceValues(redisembed.Start)
	return redis.NewClient(&redis.Options{
		Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
			server, err := start()
			if err != nil {
				return nil, err
			}
			var d net.Dialer
			return d.DialContext(ctx, network, server.Addr())
		},
	})
}
