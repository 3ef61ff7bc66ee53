//go:build !race

package lock_test

import "time"

const (
	// slack is allowed on top of promised times: what a busy machine may take.
	slack  = 250 * time.Millisecond
	racing = false
)
