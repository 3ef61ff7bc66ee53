//go:build !unix

package bench

import "errors"

var errNoPause = errors.New("bench: this system cannot stop a process and let it go on")

func (*Stage) pause(int) error  { return errNoPause }
func (*Stage) resume(int) error { return errNoPause }
