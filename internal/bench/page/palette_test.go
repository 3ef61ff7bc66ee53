package page_test

import (
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// rgb is a colour in linear light, 0 to 1.
type rgb [3]float64

// palettes reads the colours of both themes from the style sheet; what the dark one does not set is that of the light one.
func palettes(t *testing.T) map[string]map[string]rgb {
	t.Helper()
	css, err := os.ReadFile("assets/page.css")
	if err != nil {
		t.Fatal(err)
	}
	light, rest, _ := strings.Cut(string(css), "@media screen and (prefers-color-scheme: dark)")
	dark, _, found := strings.Cut(rest, "* {")
	if !found {
		t.Fatal("the style sheet has no dark colours where they are expected")
	}
	themes := map[string]map[string]rgb{"light": colours(light)}
	themes["dark"] = maps.Clone(themes["light"])
	maps.Copy(themes["dark"], colours(dark))
	return themes
}

func colours(css string) map[string]rgb {
	found := map[string]rgb{}
	for _, match := range regexp.MustCompile(`--([\w-]+): #([0-9a-f]{6});`).FindAllStringSubmatch(css, -1) {
		n, _ := strconv.ParseUint(match[2], 16, 32)
		found[match[1]] = rgb{linear(n >> 16), linear(n >> 8 & 255), linear(n & 255)}
	}
	return found
}

func named(t *testing.T, palette map[string]rgb, name string) rgb {
	t.Helper()
	c, known := palette[name]
	if !known {
		t.Fatalf("the style sheet has no colour --%s", name)
	}
	return c
}

// linear undoes the gamma of sRGB.
func linear(byte uint64) float64 {
	v := float64(byte) / 255
	if v <= 0.04045 {
		return v / 12.92
	}
	return math.Pow((v+0.055)/1.055, 2.4)
}

// contrast is that of WCAG 2, 1 to 21.
func contrast(a, b rgb) float64 {
	luminance := func(c rgb) float64 { return 0.2126*c[0] + 0.7152*c[1] + 0.0722*c[2] }
	low, high := min(luminance(a), luminance(b)), max(luminance(a), luminance(b))
	return (high + 0.05) / (low + 0.05)
}

func TestContrast(t *testing.T) {
	tests := []struct {
		least float64
		front []string
		back  []string
	}{
		{4.5, []string{"ink", "quiet"}, []string{"ground", "card", "soft"}},
		{4.5, []string{"link"}, []string{"card", "ground"}},
		{4.5, []string{"ink", "kept", "broken"}, []string{"card", "ours-soft"}},
		{4.5, []string{"kept"}, []string{"kept-soft"}},
		{4.5, []string{"broken"}, []string{"broken-soft"}},
		{4.5, []string{"card"}, []string{"kept", "broken", "quiet"}},
		{3, []string{"s0", "s1", "s2", "s3", "s4", "s5", "s6"}, []string{"card"}},
	}
	for theme, palette := range palettes(t) {
		for _, tt := range tests {
			for _, front := range tt.front {
				for _, back := range tt.back {
					if got := contrast(named(t, palette, front), named(t, palette, back)); got < tt.least {
						t.Errorf("%s: %s on %s has a contrast of %.2f, want %.1f at least", theme, front, back, got, tt.least)
					}
				}
			}
		}
	}
}

// visions turn a colour into what people see: all of it, or with one kind of cone missing (Machado, Oliveira and Fernandes 2009).
var visions = map[string][3]rgb{
	"usual":        {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
	"protanopia":   {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
	"deuteranopia": {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
	"tritanopia":   {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}},
}

func apply(m [3]rgb, c rgb) (out rgb) {
	for i, weights := range m {
		for j, w := range weights {
			out[i] += w * c[j]
		}
	}
	return out
}

// oklab returns the place of a colour in Oklab (Ottosson 2020), in which distances are about what they seem.
func oklab(c rgb) rgb {
	cones := apply([3]rgb{{0.4122214708, 0.5363325363, 0.0514459929}, {0.2119034982, 0.6806995451, 0.1073969566}, {0.0883024619, 0.2817188376, 0.6299787005}}, c)
	for i := range cones {
		cones[i] = math.Cbrt(cones[i])
	}
	return apply([3]rgb{{0.2104542553, 0.7936177850, -0.0040720468}, {1.9779984951, -2.4285922050, 0.4505937099}, {0.0259040371, 0.7827717662, -0.8086757660}}, cones)
}

func TestStrategiesDifferForAllEyes(t *testing.T) {
	const least = 0.1 // black and white are 1 apart
	for theme, palette := range palettes(t) {
		for _, vision := range slices.Sorted(maps.Keys(visions)) {
			for i := range 7 {
				for j := range i {
					a, b := oklab(apply(visions[vision], named(t, palette, fmt.Sprint("s", i)))), oklab(apply(visions[vision], named(t, palette, fmt.Sprint("s", j))))
					if d := math.Hypot(math.Hypot(a[0]-b[0], a[1]-b[1]), a[2]-b[2]); d < least {
						t.Errorf("%s, %s: the colours %d and %d are %.3f apart, want %.2f at least", theme, vision, j, i, d, least)
					}
				}
			}
		}
	}
}
