package entry_test

import (
	"testing"
)

// TestConformance holds the protocol to the same answers on an embedded, a real
// and a clustered Redis. Each test of a rule forces the interleaving that the
// rule closes. Rules 3 and 13 are about what the cache does with the answers,
// and are tested there.
func TestConformance(t *testing.T) {
	tests := []struct {
		name string
		test func(*testing.T, *backend)
	}{
		{"Acquire", testAcquire},
		{"ForeignRead", testForeignRead},
		{"WrongType", testWrongType},
		{"Lease", testLease},
		{"FillStamps", testFillStamps},
		{"MarkStale", testMarkStale},
		{"Seize", testSeize},
		{"Rule01TokenPerGrant", testRule01TokenPerGrant},
		{"Rule01Mutant", testRule01Mutant},
		{"Rule02OnceOverTheWire", testRule02OnceOverTheWire},
		{"Rule02LateCopy", testRule02LateCopy},
		{"Rule02Mutant", testRule02Mutant},
		{"Rule02NoScript", testRule02NoScript},
		{"Rule02AllLost", testRule02AllLost},
		{"Rule02Recognized", testRule02Recognized},
		{"Rule04OneKey", testRule04OneKey},
		{"Rule05KeptAlive", testRule05KeptAlive},
		{"Rule06ShortLease", testRule06ShortLease},
		{"Rule07SmallReplies", testRule07SmallReplies},
		{"Rule08Undecodable", testRule08Undecodable},
		{"Rule10ScriptFlush", testRule10ScriptFlush},
		{"Rule11Failures", testRule11Failures},
		{"Rule12Clocks", testRule12Clocks},
		{"Rule12ClockPerPrimary", testRule12ClockPerPrimary},
		{"Rule12ForgottenMeanwhile", testRule12ForgottenMeanwhile},
		{"Rule12Forgets", testRule12Forgets},
		{"Rule15Claim", testRule15Claim},
		{"Model", testModel},
		{"Repeats", testRepeats},
		{"OddKeys", testOddKeys},
		{"Payloads", testPayloads},
		{"ShortLives", testShortLives},
		{"FailureText", testFailureText},
	}
	onBackends(t, func(t *testing.T, b *backend) {
		for _, c := range tests {
			t.Run(c.name, func(t *testing.T) { c.test(t, b) })
		}
	})
}
