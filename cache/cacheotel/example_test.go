package cacheotel_test

import (
	"context"
	"fmt"
	"log"
	"net"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/cache/cacheotel"
	"github.com/getorprime/getorprime/internal/redisembed"
)

// dial connects the example's client to an embedded server.
func dial(ctx context.Context, network, _ string) (net.Conn, error) {
	server, err := redisembed.Start()
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	return d.DialContext(ctx, network, server.Addr())
}

func ExampleNew() {
	rdb := redis.NewClient(&redis.Options{Dialer: dial, PoolSize: 1})
	reader := metric.NewManualReader() // in production: an exporter's reader
	observer, err := cacheotel.New(&cacheotel.Options{
		MeterProvider: metric.NewMeterProvider(metric.WithReader(reader)),
	})
	if err != nil {
		log.Fatal(err)
	}
	c, err := cache.New(rdb, &cache.Options{Observer: observer, DisablePubSub: true})
	if err != nil {
		log.Fatal(err)
	}
	users, err := cache.Register(c, "user:", func(_ context.Context, id string) (string, error) {
		return "Ada", nil
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	for range 3 {
		if _, err := users.GetOrPrime(ctx, "7"); err != nil {
			log.Fatal(err)
		}
	}
	var collected metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &collected); err != nil {
		log.Fatal(err)
	}
	for _, m := range collected.ScopeMetrics[0].Metrics {
		if m.Name != "getorprime.calls" {
			continue
		}
		for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
			outcome, _ := p.Attributes.Value("outcome")
			fmt.Println(m.Name, outcome.AsString(), p.Value)
		}
	}
	// Unordered output:
	// getorprime.calls miss 1
	// getorprime.calls hit 2
}
