package loader_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/getorprime/getorprime/loader"
)

func ExampleNotFoundOn() {
	find := func(_ context.Context, id string) (string, error) {
		if id != "7" {
			return "", sql.ErrNoRows
		}
		return "Ada", nil
	}
	load := loader.NotFoundOn(find, sql.ErrNoRows)
	_, err := load(context.Background(), "8")
	fmt.Println(errors.Is(err, loader.ErrNotFound), errors.Is(err, sql.ErrNoRows))
	// Output: true true
}

func ExampleSetTTL() {
	var load loader.Func[string] = func(ctx context.Context, id string) (string, error) {
		token, expiresIn := "token of "+id, 5*time.Minute
		loader.SetTTL(ctx, expiresIn-30*time.Second)
		return token, nil
	}
	fmt.Println(load(context.Background(), "7")) // no load around it: SetTTL does nothing
	// Output: token of 7 <nil>
}

func ExampleNoStore() {
	var load loader.Func[string] = func(ctx context.Context, id string) (string, error) {
		preliminary := id == "draft"
		if preliminary {
			loader.NoStore(ctx)
		}
		return "text of " + id, nil
	}
	fmt.Println(load(context.Background(), "draft"))
	// Output: text of draft <nil>
}

func ExamplePrevious() {
	type page struct{ ETag, Body string }
	current := page{ETag: "v2", Body: "hello"}
	var load loader.Func[page] = func(ctx context.Context, _ string) (page, error) {
		if old, ok := loader.Previous[page](ctx); ok && old.ETag == current.ETag {
			return page{}, loader.ErrNotModified
		}
		return current, nil
	}
	fmt.Println(load(context.Background(), "index")) // no load around it: nothing previous
	// Output: {v2 hello} <nil>
}

func ExampleRegistry() {
	var r loader.Registry[string]
	for prefix, table := range map[string]string{"user:": "users", "user:vip:": "vips", "order:": "orders"} {
		if err := r.Add(prefix, table); err != nil {
			fmt.Println(err)
		}
	}
	prefix, table, ok := r.Lookup("user:vip:7")
	fmt.Println(prefix, table, ok)
	fmt.Println(r.Extends("user:"))
	for prefix := range r.All() {
		fmt.Println(prefix)
	}
	// Output:
	// user:vip: vips true
	// [user:vip:]
	// order:
	// user:
	// user:vip:
}
