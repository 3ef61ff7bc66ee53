package entry

import (
	"context"
	_ "embed"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/command"
)

//go:embed lua/lib.lua
var libSrc string

//go:embed lua/timedget.lua
var timedGetSrc string

//go:embed lua/acquire.lua
var acquireSrc string

//go:embed lua/fill.lua
var fillSrc string

//go:embed lua/extend.lua
var extendSrc string

//go:embed lua/fail.lua
var failSrc string

//go:embed lua/release.lua
var releaseSrc string

//go:embed lua/seize.lua
var seizeSrc string

//go:embed lua/invalidate.lua
var invalidateSrc string

//go:embed lua/markstale.lua
var markStaleSrc string

var (
	timedGetScript   = command.NewScript(libSrc, timedGetSrc)
	acquireScript    = command.NewScript(libSrc, acquireSrc)
	fillScript       = command.NewScript(libSrc, fillSrc)
	extendScript     = command.NewScript(libSrc, extendSrc)
	failScript       = command.NewScript(libSrc, failSrc)
	releaseScript    = command.NewScript(libSrc, releaseSrc)
	seizeScript      = command.NewScript(libSrc, seizeSrc)
	invalidateScript = command.NewScript(libSrc, invalidateSrc)
	markStaleScript  = command.NewScript(libSrc, markStaleSrc)
)

// idempotent runs a script that may be sent again after a lost reply.
func (s *Store) idempotent(ctx context.Context, sc command.Script, key string, args ...any) (cmd *redis.Cmd, err error) {
	err = s.persist(ctx, func() (err error) {
		cmd, err = sc.Run(ctx, s.Sender, []any{key}, args...)
		return err
	})
	return cmd, err
}

// persist runs a command: it repeats try while it fails in a way that another
// attempt may mend. While the circuit breaker is open it does not even begin,
// unless ctx insists.
func (s *Store) persist(ctx context.Context, try func() error) error {
	if command.Insists(ctx) {
		return command.Retry(ctx, try)
	}
	return s.breaker.run(ctx, func() error { return command.Retry(ctx, try) })
}
