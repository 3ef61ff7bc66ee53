package page

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// missing stands for a figure that was not taken.
const missing = "–"

// count writes a whole number with its thousands apart: 12,345.
func count[T int | int64](n T) string {
	digits := strconv.FormatInt(int64(n), 10)
	sign := ""
	if digits[0] == '-' {
		sign, digits = "−", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// optionalCount is count for a figure that may be missing.
func optionalCount[T int | int64](n *T) string {
	if n == nil {
		return missing
	}
	return count(*n)
}

// milliseconds writes a time given in milliseconds, without the unit, to a tenth or to three digits, whichever is finer.
func milliseconds(v float64) string {
	switch size := math.Abs(v); {
	case !finite(v):
		return missing
	case v == 0:
		return "0"
	case size < 1:
		return fmt.Sprintf("%.3f", v)
	case size < 10:
		return fmt.Sprintf("%.2f", v)
	case size < 1000:
		return fmt.Sprintf("%.1f", v)
	}
	return whole(v)
}

// optionalMilliseconds is milliseconds for a figure that may be missing.
func optionalMilliseconds(v *float64) string {
	if v == nil {
		return missing
	}
	return milliseconds(*v)
}

// instant writes a time since the start with its unit: "40 ms", "1.25 s".
func instant(ms float64) string {
	if ms < 1000 {
		return trimmed(ms, 3) + " ms"
	}
	return trimmed(ms/1000, 2) + " s"
}

// quantity writes any number to four digits.
func quantity(v float64) string {
	switch {
	case !finite(v):
		return missing
	case math.Abs(v) >= 1000:
		return whole(v)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// whole writes v without its fraction. Beyond what an int64 holds it falls back to an exponent.
func whole(v float64) string {
	if math.Abs(v) < 1<<62 {
		return count(int64(math.Round(v)))
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// trimmed writes v with at most so many decimals, and no zeros at the end of them.
func trimmed(v float64, decimals int) string {
	text := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// ratio writes how far measured is from predicted: "as predicted", "+3 %", "× 12"; missing where that says nothing.
func ratio(measured, predicted float64) string {
	r := measured / predicted
	switch {
	case !finite(r) || r < 0:
		return missing
	case r >= 10:
		return "× " + quantity(r)
	}
	percent := math.Round((r - 1) * 100)
	switch {
	case percent == 0:
		return "as predicted"
	case percent < 0:
		return "−" + trimmed(-percent, 0) + " %"
	}
	return "+" + trimmed(percent, 0) + " %"
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// plural says how many there are of a thing with a regular English plural.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return count(n) + " " + thing + "s"
}

// list joins words as a sentence does: "a, b and c".
func list(words []string) string {
	switch n := len(words); n {
	case 0:
		return ""
	case 1:
		return words[0]
	default:
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
}
