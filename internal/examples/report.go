package examples

import (
	"context"
	"errors"

	"github.com/getorprime/getorprime/lock"
)

// MonthlyReport has the report of a month ("2026-11") written once, on whichever
// node is first; every node may call it, from cron for instance. The others wait
// meanwhile, and one takes over if the first fails or dies. It returns nil when
// the report is written, no matter by whom.
func MonthlyReport(ctx context.Context, locker *lock.Locker, month string, write func(context.Context) error) error {
	err := locker.Run(ctx, "monthly-report", write, &lock.RunOptions{Slot: month, Wait: -1})
	if errors.Is(err, lock.ErrAlreadyRan) {
		return nil
	}
	return err
}
