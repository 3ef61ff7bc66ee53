//go:build unix && !race

package cache_test

import "time"

// slack is allowed on top of promised times: none.
const slack = time.Duration(0)
