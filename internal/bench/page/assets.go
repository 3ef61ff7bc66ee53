package page

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
)

var (
	//go:embed assets/page.html.tmpl
	pageHTML string
	//go:embed assets/page.css
	pageCSS string
	//go:embed assets/page.js
	pageJS string
	//go:embed assets/uPlot.iife.min.js
	uplotJS string
	//go:embed assets/uPlot.min.css
	uplotCSS string
	//go:embed assets/uPlot.LICENSE
	uplotLicense string
)

// pageTemplate escapes all text by where it stands.
var pageTemplate = template.Must(template.New("page").Parse(pageHTML))

// style and script are the whole of either, in one element each. The licence asks to be part of every copy.
var (
	style  = uplotCSS + "\n" + pageCSS
	script = "/*\n" + uplotLicense + "\n*/\n" + uplotJS + "\n" + pageJS
)

// policy allows the one style and the one script by what is in them, and nothing else: no address is ever asked.
var policy = "default-src 'none'; script-src " + source(script) + "; style-src " + source(style) + "; base-uri 'none'; form-action 'none'"

// source names an inline element in a Content-Security-Policy by its digest.
func source(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
