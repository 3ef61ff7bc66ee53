// Package testaccess lets the module's test support reach what package cache
// keeps to itself, so that none of it has to be exported. Package cache sets the
// variables when it is initialised; only package cachetest uses them.
package testaccess

// ForgetServerTime makes a *cache.Cache forget how far the server's clock is
// ahead of its own: the next read asks the server, and what is still under way
// teaches it nothing.
var ForgetServerTime func(cache any)
