package examples_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"

	"github.com/getorprime/getorprime/internal/examples"
	"github.com/getorprime/getorprime/internal/redisembed"
	"github.com/getorprime/getorprime/lock"
)

// newLocker returns the locker of a node.
func newLocker(server *redisembed.Server) *lock.Locker {
	locker, err := lock.New(server.Client(), nil)
	if err != nil {
		log.Fatal(err)
	}
	return locker
}

func ExampleShop() {
	server, err := redisembed.Start()
	if err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "shop")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	stock, err := examples.OpenStock(ctx, filepath.Join(dir, "stock.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()
	if err := stock.Put(ctx, "cup", 1); err != nil {
		log.Fatal(err)
	}

	shop := &examples.Shop{Stock: stock, Pack: func(context.Context, string) error { return nil }}
	routes, err := shop.Routes(newLocker(server))
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		w := httptest.NewRecorder()
		routes.ServeHTTP(w, httptest.NewRequest("POST", "/stock/cup/orders", nil))
		fmt.Print(w.Code, " ", w.Body)
	}
	// Output:
	// 201 sold
	// 409 sold out
}

func ExampleMonthlyReport() {
	server, err := redisembed.Start()
	if err != nil {
		log.Fatal(err)
	}
	write := func(context.Context) error {
		fmt.Println("the report of November")
		return nil
	}
	var nodes sync.WaitGroup
	for range 3 {
		nodes.Go(func() {
			if err := examples.MonthlyReport(context.Background(), newLocker(server), "2026-11", write); err != nil {
				log.Fatal(err)
			}
		})
	}
	nodes.Wait()
	// Output:
	// the report of November
}
