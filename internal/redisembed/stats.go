package redisembed

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/alicebob/miniredis/v2/server"
)

// containers are the commands whose first argument is a command of its own;
// Redis counts those apart.
var containers = map[string]bool{
	"CLIENT": true, "CLUSTER": true, "COMMAND": true, "CONFIG": true, "MEMORY": true,
	"OBJECT": true, "PUBSUB": true, "SCRIPT": true, "XGROUP": true, "XINFO": true,
}

// commandStats counts the calls of each command, those made by scripts
// included, as Redis does, and answers INFO commandstats with them.
type commandStats struct {
	srv *server.Server

	mu    sync.Mutex // guards calls
	calls map[string]int64
}

func newCommandStats(srv *server.Server) *commandStats {
	return &commandStats{srv: srv, calls: map[string]int64{}}
}

// before counts a command that is about to run. It reports whether it has
// answered it.
func (s *commandStats) before(peer *server.Peer, cmd string, args []string) bool {
	if !s.srv.IsRegisteredCommand(cmd) {
		return false
	}
	wanted := cmd == "INFO" && len(args) == 1 && strings.EqualFold(args[0], "commandstats")
	if wanted {
		peer.WriteBulk(s.section())
	}
	s.count(cmd, args)
	return wanted
}

func (s *commandStats) count(cmd string, args []string) {
	name := cmd
	if containers[cmd] && len(args) > 0 {
		name += "|" + args[0]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[strings.ToLower(name)]++
}

func (s *commandStats) section() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	b.WriteString("# Commandstats\r\n")
	for _, name := range slices.Sorted(maps.Keys(s.calls)) {
		fmt.Fprintf(&b, "cmdstat_%s:calls=%d\r\n", name, s.calls[name])
	}
	return b.String()
}
