// Package ui carries the built web page inside the binary.
package ui

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var files embed.FS

// Dist returns the built page: index.html, theme.js, favicon.svg and assets/
// at its root. Before the page has been built it holds no index.html.
func Dist() fs.FS {
	dist, err := fs.Sub(files, "dist")
	if err != nil {
		// fs.Sub fails for a malformed path only, and this one is constant.
		panic(err)
	}
	return dist
}
