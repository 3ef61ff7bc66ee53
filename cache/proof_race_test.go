//go:build unix && race

package cache_test

import "time"

// slack is allowed on top of promised times: under the race detector everything
// takes several times as long.
const slack = time.Second
