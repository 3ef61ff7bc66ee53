package cache

import "github.com/getorprime/getorprime/internal/testaccess"

func init() {
	testaccess.ForgetServerTime = func(c any) { c.(*Cache).store.ForgetTime() }
}
