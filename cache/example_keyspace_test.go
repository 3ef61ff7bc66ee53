package cache_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/loader"
)

// mustOpen returns a cache on the examples' Redis whose keys begin with
// namespace.
func mustOpen(namespace string) *cache.Cache {
	c, err := cache.New(rdb, &cache.Options{Namespace: namespace})
	if err != nil {
		log.Fatal(err)
	}
	return c
}

// mustRegister registers a keyspace of texts.
func mustRegister(c *cache.Cache, prefix string, load loader.Func[string]) *cache.Keyspace[string] {
	k, err := cache.Register(c, prefix, load, nil)
	if err != nil {
		log.Fatal(err)
	}
	return k
}

func ExampleNew() {
	c, err := cache.New(rdb, &cache.Options{Namespace: "new:", LeaseTTL: 5 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(c.Close(context.Background()))
	_, err = cache.New(nil, &cache.Options{LeaseTTL: time.Hour, RedisBudget: -1})
	fmt.Println(err)
	// Output:
	// <nil>
	// cache: client is nil: pass a *redis.Client or *redis.ClusterClient
	// cache: Options.RedisBudget is -1ns: must be at least 1ms
	// cache: Options.LeaseTTL is 1h0m0s: must be from 10ms to 1m0s
}

func ExampleRegister() {
	c := mustOpen("register:")
	titles, err := cache.Register(c, "title:", func(_ context.Context, id string) (string, error) {
		fmt.Println("loading", id)
		return "title of " + id, nil
	}, &cache.Policy{TTL: time.Hour, NotFoundTTL: time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		fmt.Println(titles.GetOrPrime(context.Background(), "7"))
	}
	// Output:
	// loading 7
	// title of 7 <nil>
	// title of 7 <nil>
}

func ExampleGetOrPrime() {
	c := mustOpen("untyped:")
	mustRegister(c, "title:", func(_ context.Context, id string) (string, error) { return "title of " + id, nil })
	ctx := context.Background()

	fmt.Println(cache.GetOrPrime[string](ctx, c, "title:7"))
	fmt.Println(cache.GetOrPrime[any](ctx, c, "title:7"))
	_, err := cache.GetOrPrime[int](ctx, c, "title:7")
	fmt.Println(err)
	_, err = cache.GetOrPrime[string](ctx, c, "price:7")
	fmt.Println(errors.Is(err, cache.ErrNoLoader))
	// Output:
	// title of 7 <nil>
	// title of 7 <nil>
	// cache: keyspace "title:" holds string, not int
	// true
}

func ExampleKeyspace_GetOrPrime() {
	k := mustRegister(mustOpen("get:"), "greeting:", func(_ context.Context, id string) (string, error) {
		if id == "nobody" {
			return "", loader.ErrNotFound
		}
		return "hello " + id, nil
	})
	fmt.Println(k.GetOrPrime(context.Background(), "ada"))
	_, err := k.GetOrPrime(context.Background(), "nobody")
	fmt.Println(errors.Is(err, loader.ErrNotFound))
	// Output:
	// hello ada <nil>
	// true
}

func ExampleKeyspace_GetOrLoad() {
	k := mustRegister(mustOpen("getorload:"), "report:", nil)
	month := "May"
	report, err := k.GetOrLoad(context.Background(), month, func(_ context.Context, id string) (string, error) {
		return strings.ToUpper(id) + ": all is well", nil
	})
	fmt.Println(report, err)
	// Output: MAY: all is well <nil>
}

func ExampleKeyspace_Fetch() {
	k := mustRegister(mustOpen("fetch:"), "a:", func(context.Context, string) (string, error) { return "v", nil })
	for range 2 {
		r, err := k.Fetch(context.Background(), "1")
		fmt.Println(r.Value, r.Source, r.Stored, r.TTL > 50*time.Second, err)
	}
	// Output:
	// v load true true <nil>
	// v redis true true <nil>
}

func ExampleKeyspace_Peek() {
	k := mustRegister(mustOpen("peek:"), "a:", nil)
	ctx := context.Background()
	_, err := k.Peek(ctx, "1")
	fmt.Println(errors.Is(err, cache.ErrMiss))
	if err := k.Set(ctx, "1", "v"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(k.Peek(ctx, "1"))
	// Output:
	// true
	// v <nil>
}

func ExampleKeyspace_Set() {
	k := mustRegister(mustOpen("set:"), "price:", func(context.Context, string) (string, error) { return "loaded", nil })
	ctx := context.Background()
	// After the database has committed:
	if err := k.Set(ctx, "7", "1.20"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(k.GetOrPrime(ctx, "7"))
	// Output: 1.20 <nil>
}

func ExampleKeyspace_Refresh() {
	version := 0
	k := mustRegister(mustOpen("refresh:"), "a:", func(context.Context, string) (string, error) {
		version++
		return fmt.Sprint("version ", version), nil
	})
	ctx := context.Background()
	fmt.Println(k.GetOrPrime(ctx, "1"))
	fmt.Println(k.Refresh(ctx, "1"))
	fmt.Println(k.GetOrPrime(ctx, "1"))
	// Output:
	// version 1 <nil>
	// version 2 <nil>
	// version 2 <nil>
}

func ExampleKeyspace_Invalidate() {
	database := map[string]string{"7": "Ada"}
	k := mustRegister(mustOpen("invalidate:"), "name:", func(_ context.Context, id string) (string, error) {
		return database[id], nil
	})
	ctx := context.Background()
	fmt.Println(k.GetOrPrime(ctx, "7"))
	database["7"] = "Grace" // first the database, then the cache
	if err := k.Invalidate(ctx, "7"); err != nil {
		log.Fatal(err) // try again: the old value may still be served
	}
	fmt.Println(k.GetOrPrime(ctx, "7"))
	// Output:
	// Ada <nil>
	// Grace <nil>
}

func ExampleCache_Invalidate() {
	c := mustOpen("invalidate all:")
	visits := 0
	load := func(context.Context, string) (string, error) {
		visits++
		return fmt.Sprint("visit ", visits), nil
	}
	a, b := mustRegister(c, "a:", load), mustRegister(c, "b:", load)
	ctx := context.Background()
	fmt.Println(a.GetOrPrime(ctx, "1"))
	fmt.Println(b.GetOrPrime(ctx, "1"))
	if err := c.Invalidate(ctx, "a:1", "b:1"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(a.GetOrPrime(ctx, "1"))
	// Output:
	// visit 1 <nil>
	// visit 2 <nil>
	// visit 3 <nil>
}
