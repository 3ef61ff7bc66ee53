//go:build race

package lock_test

import "time"

const (
	// slack is allowed on top of promised times: under the race detector everything
	// takes several times as long.
	slack  = time.Second
	racing = true
)
