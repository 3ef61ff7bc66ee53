package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
)

// versionCommand is prime version.
type versionCommand struct {
	JSON bool `name:"json" help:"Print one JSON object."`
}

// build is what the Go toolchain recorded about this binary.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision"` // "" if built outside a checkout
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Run prints the version.
func (v *versionCommand) Run(s *streams) error {
	b := thisBuild()
	if v.JSON {
		return json.NewEncoder(s.out).Encode(b)
	}
	_, err := fmt.Fprintf(s.out, "prime %s (%s, %s, %s)\n", b.Version, cmp.Or(b.Revision, "no revision"), b.Go, b.Platform)
	return err
}

func thisBuild() build {
	b := build{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Version = cmp.Or(info.Main.Version, b.Version)
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Revision = s.Value
		}
	}
	return b
}
