package page

import (
	"math"
	"testing"
)

func TestFormat(t *testing.T) {
	tests := []struct {
		name, got, want string
	}{
		{"count", count(7), "7"},
		{"count of thousands", count(1234567), "1,234,567"},
		{"count of a thousand", count(1000), "1,000"},
		{"negative count", count(int64(-123456)), "−123,456"},
		{"smallest count", count(int64(math.MinInt64)), "−9,223,372,036,854,775,808"},
		{"no count", optionalCount[int](nil), "–"},
		{"microseconds", milliseconds(0.0125), "0.013"},
		{"milliseconds", milliseconds(9.876), "9.88"},
		{"tenths", milliseconds(104.26), "104.3"},
		{"seconds", milliseconds(12345.6), "12,346"},
		{"no time", milliseconds(0), "0"},
		{"endless time", milliseconds(math.Inf(1)), "–"},
		{"missing time", optionalMilliseconds(nil), "–"},
		{"instant", instant(40), "40 ms"},
		{"instant in seconds", instant(1250), "1.25 s"},
		{"instant in whole seconds", instant(10000), "10 s"},
		{"short instant", instant(0.5), "0.5 ms"},
		{"quantity", quantity(2.71828), "2.718"},
		{"small quantity", quantity(0.00123456), "0.001235"},
		{"large quantity", quantity(123456.7), "123,457"},
		{"huge quantity", quantity(1e20), "1e+20"},
		{"no quantity", quantity(math.NaN()), "–"},
		{"as predicted", ratio(1.001, 1), "as predicted"},
		{"more", ratio(1.5, 1), "+50 %"},
		{"less", ratio(0.37, 1), "−63 %"},
		{"far more", ratio(123, 10), "× 12.3"},
		{"of nothing", ratio(1, 0), "–"},
		{"nothing of nothing", ratio(0, 0), "–"},
		{"of the other sign", ratio(1, -1), "–"},
		{"no words", list(nil), ""},
		{"three words", list([]string{"a", "b", "c"}), "a, b and c"},
		{"one thing", plural(1, "promise"), "1 promise"},
		{"things", plural(1200, "promise"), "1,200 promises"},
		{"solid", dash{}.String(), "none"},
		{"dashed", dash{7, 2.5}.String(), "7 2.5"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.got != tt.want {
				t.Errorf("got %q, want %q", tt.got, tt.want)
			}
		})
	}
}
