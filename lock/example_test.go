package lock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/redistest"
	"github.com/getorprime/getorprime/lock"
)

// rdb is the client of all examples.
var rdb redis.UniversalClient = redistest.Embedded()

// newLocker is what the examples begin with.
func newLocker(namespace string) *lock.Locker {
	locker, err := lock.New(rdb, &lock.Options{Namespace: namespace})
	if err != nil {
		log.Fatal(err)
	}
	return locker
}

// writeReport makes the monthly report.
func writeReport(context.Context) error {
	fmt.Println("the report is written")
	return nil
}

// runReport runs the report on one node, once a month.
func runReport(ctx context.Context, locker *lock.Locker, month string) error {
	err := locker.Run(ctx, "monthly-report", writeReport, &lock.RunOptions{Slot: month, SlotTTL: 40 * 24 * time.Hour})
	if errors.Is(err, lock.ErrNotAcquired) || errors.Is(err, lock.ErrAlreadyRan) {
		return nil // another node does it, or did
	}
	return err
}

// Three nodes are told to write the monthly report; one does.
func Example() {
	ctx := context.Background()
	for range 3 { // nodes
		locker := newLocker("example:")
		defer locker.Close(ctx)
		if err := runReport(ctx, locker, "2026-11"); err != nil {
			log.Fatal(err)
		}
	}
	// Output: the report is written
}

func ExampleLocker_Acquire() {
	locker := newLocker("acquire:")
	defer locker.Close(context.Background())

	lease, err := locker.Acquire(context.Background(), "stock-7", &lock.AcquireOptions{Wait: 5 * time.Second})
	if err != nil {
		log.Fatal(err) // ErrNotAcquired: others held it for five seconds
	}
	defer lease.Release(context.Background())
	fmt.Println("held:", lease.Err() == nil) // work under lease.Context()
	// Output: held: true
}

func ExampleLocker_TryAcquire() {
	locker := newLocker("try:")
	defer locker.Close(context.Background())

	lease, err := locker.TryAcquire(context.Background(), "stock-7", nil)
	if err != nil {
		log.Fatal(err)
	}
	_, err = locker.TryAcquire(context.Background(), "stock-7", nil)
	fmt.Println(errors.Is(err, lock.ErrNotAcquired))
	lease.Release(context.Background())
	// Output: true
}

// A store that has seen a later fence refuses an earlier one.
func ExampleLease_Fence() {
	ctx := context.Background()
	locker := newLocker("fence:")
	defer locker.Close(ctx)
	var seen int64
	write := func(fence int64) bool {
		ok := fence >= seen
		seen = max(seen, fence)
		return ok
	}

	paused, _ := locker.Acquire(ctx, "row-7", &lock.AcquireOptions{Fenced: true})
	old, _ := paused.Fence(ctx)
	rdb.Del(ctx, "fence:lock:{row-7}") // as if its process had slept beyond the TTL

	lease, _ := locker.Acquire(ctx, "row-7", nil)
	fence, err := lease.Fence(ctx)
	fmt.Println(fence > old, err)
	fmt.Println("new holder:", write(fence))
	fmt.Println("old holder:", write(old))
	fmt.Println(paused.Release(ctx))
	lease.Release(ctx)
	// Output:
	// true <nil>
	// new holder: true
	// old holder: false
	// lease lost
}

func ExampleLocker_Run() {
	ctx := context.Background()
	locker := newLocker("run:")
	defer locker.Close(ctx)
	err := locker.Run(ctx, "import", func(ctx context.Context) error {
		fence, err := lock.LeaseFrom(ctx).Fence(ctx)
		fmt.Println("running with a fence:", fence > 0)
		return err
	}, nil)
	fmt.Println(err)
	// Output:
	// running with a fence: true
	// <nil>
}

// Three at a time: a semaphore.
func ExampleAcquireOptions_holders() {
	ctx := context.Background()
	locker := newLocker("sem:")
	defer locker.Close(ctx)
	opts := &lock.AcquireOptions{Holders: 3}
	for range 4 {
		lease, err := locker.TryAcquire(ctx, "uploads", opts)
		fmt.Println(err == nil)
		if err == nil {
			defer lease.Release(ctx)
		}
	}
	// Output:
	// true
	// true
	// true
	// false
}

func ExampleLocker_Status() {
	ctx := context.Background()
	locker := newLocker("status:")
	defer locker.Close(ctx)
	lease, err := locker.Acquire(ctx, "import", &lock.AcquireOptions{Info: "the importer"})
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Release(ctx)
	status, err := locker.Status(ctx, "import")
	fmt.Println(status.Holders[0].Info, status.Holders[0].State, err)
	// Output: the importer held <nil>
}
