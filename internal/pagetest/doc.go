// Package pagetest opens the bench's report in a real browser: a headless Chromium that chromedp drives. It is a module of its own, so
// that nobody who uses the library inherits chromedp.
//
// The tests write a report of fourteen scenarios with seven strategies to a file, open it as a user does, and look at it wide and
// narrow, light and dark, and on paper: whether each chart is drawn, whether anything overflows, whether the console stays silent, and
// whether the page asks the network for nothing. With ARTIFACTS set to a directory they leave screenshots there.
package pagetest
