package lock

import (
	_ "embed"

	"github.com/getorprime/getorprime/internal/command"
)

//go:embed lua/lib.lua
var libSrc string

//go:embed lua/acquire.lua
var acquireSrc string

//go:embed lua/release.lua
var releaseSrc string

//go:embed lua/leave.lua
var leaveSrc string

//go:embed lua/renew.lua
var renewSrc string

//go:embed lua/fence.lua
var fenceSrc string

var (
	acquireScript = command.NewScript(libSrc, acquireSrc)
	releaseScript = command.NewScript(libSrc, releaseSrc)
	leaveScript   = command.NewScript(libSrc, leaveSrc)
	renewScript   = command.NewScript(libSrc, renewSrc)
	fenceScript   = command.NewScript(libSrc, fenceSrc)
)

// How long a lock stays reserved for the process that was named as the next, so
// that it can come and take it: lua/lib.lua, function hand. How long waiters are
// remembered without asking: lua/acquire.lua. How long a fence counter outlives
// its last use, 24 h: lua/lib.lua, function fence.
