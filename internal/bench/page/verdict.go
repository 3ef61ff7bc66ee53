package page

import (
	"fmt"
	"slices"
	"strings"
)

// verdict is the whole report in words.
type verdict struct {
	badge
	// Breaches are the broken promises of this module's own strategies, one a line.
	Breaches []breach
	// Others says how the other strategies fared.
	Others string
}

// breach is a promise that one of this module's own strategies broke.
type breach struct{ SectionID, Text string }

// strategyVerdict is what one strategy did in one scenario.
type strategyVerdict struct {
	Key    key
	Words  string
	Badge  badge
	Broken string
}

// promiseVerdict is what the strategies made of one promise.
type promiseVerdict struct {
	Name  string
	Parts []promisePart
}

// promisePart names the strategies that kept, or broke, one promise.
type promisePart struct{ State, Text string }

func newVerdict(d *Data) verdict {
	names, scenarios := ourNames(d.Sections)
	v := verdict{Breaches: breaches(d.Sections), Others: othersSentence(d.Sections)}
	switch {
	case len(d.Sections) == 0:
		v.badge = badge{State: "", Text: "Nothing was measured: there are no scenarios in this report."}
	case len(names) == 0:
		v.badge = badge{State: "", Text: "getorprime took no part in this bench."}
	case len(v.Breaches) > 0:
		v.badge = badge{State: "broken", Text: fmt.Sprintf("%s broke %s", list(names), plural(len(v.Breaches), "promise"))}
	case !d.Kept:
		v.badge = badge{State: "broken", Text: list(names) + " did not keep all promises"}
	case len(names) == 1:
		v.badge = badge{State: "kept", Text: fmt.Sprintf("%s kept all its promises in %s", names[0], plural(scenarios, "scenario"))}
	default:
		v.badge = badge{State: "kept", Text: fmt.Sprintf("%s kept all their promises in %s", list(names), plural(scenarios, "scenario"))}
	}
	return v
}

// ourNames returns the names of this module's strategies, each once, and in how many scenarios they took part.
func ourNames(sections []Section) (names []string, scenarios int) {
	var seen []string
	for _, s := range sections {
		for _, r := range s.Rows {
			if !r.Ours {
				continue
			}
			if !slices.Contains(names, r.Strategy) {
				names = append(names, r.Strategy)
			}
			if name := sectionName(s); !slices.Contains(seen, name) {
				seen = append(seen, name)
			}
		}
	}
	return names, len(seen)
}

func breaches(sections []Section) []breach {
	var found []breach
	for i, s := range sections {
		for _, r := range s.Rows {
			if !r.Ours {
				continue
			}
			for _, name := range brokenOf(promisesOf(r)) {
				found = append(found, breach{fmt.Sprintf("s%d", i+1), fmt.Sprintf("%s, by %s in %s", name, r.Strategy, sectionName(s))})
			}
		}
	}
	return found
}

// tally is in how many scenarios a strategy broke a promise, of those it took part in.
type tally struct {
	name      string
	broke, of int
}

// othersSentence counts for the strategies of others, those that broke most first.
func othersSentence(sections []Section) string {
	var tallies []tally
	for _, s := range sections {
		for _, r := range s.Rows {
			if r.Ours {
				continue
			}
			i := slices.IndexFunc(tallies, func(t tally) bool { return t.name == r.Strategy })
			if i < 0 {
				i, tallies = len(tallies), append(tallies, tally{name: r.Strategy})
			}
			tallies[i].of++
			if len(brokenOf(promisesOf(r))) > 0 {
				tallies[i].broke++
			}
		}
	}
	if len(tallies) == 0 {
		return ""
	}
	slices.SortStableFunc(tallies, func(a, b tally) int { return b.broke - a.broke })
	var parts []string
	for _, t := range tallies {
		parts = append(parts, fmt.Sprintf("%s %s of %s", t.name, count(t.broke), count(t.of)))
	}
	return "Scenarios in which the others broke a promise: " + strings.Join(parts, ", ") + "."
}

// promisesOf returns the promises of a row, those that only Broken names included.
func promisesOf(r Row) []Promise {
	promises := slices.Clone(r.Promises)
	for _, name := range r.Broken {
		i := slices.IndexFunc(promises, func(p Promise) bool { return p.Name == name })
		if i < 0 {
			promises = append(promises, Promise{Name: name})
			continue
		}
		promises[i].Kept = false
	}
	return promises
}

func brokenOf(promises []Promise) []string {
	var names []string
	for _, p := range promises {
		if !p.Kept {
			names = append(names, p.Name)
		}
	}
	return names
}

func newStrategyVerdict(r Row, k key) strategyVerdict {
	words := strings.TrimSuffix(strings.TrimPrefix(r.Verdict, r.Strategy+": "), ".")
	return strategyVerdict{Key: k, Words: words, Badge: newBadge(r), Broken: list(brokenOf(promisesOf(r)))}
}

// promiseVerdicts goes through the promises of all rows in the order in which they first appear.
func promiseVerdicts(rows []Row) []promiseVerdict {
	var verdicts []promiseVerdict
	kept, broke := map[string][]string{}, map[string][]string{}
	for _, r := range rows {
		for _, p := range promisesOf(r) {
			if len(kept[p.Name])+len(broke[p.Name]) == 0 {
				verdicts = append(verdicts, promiseVerdict{Name: p.Name})
			}
			if p.Kept {
				kept[p.Name] = append(kept[p.Name], r.Strategy)
			} else {
				broke[p.Name] = append(broke[p.Name], r.Strategy)
			}
		}
	}
	for i, v := range verdicts {
		verdicts[i].Parts = promiseParts(kept[v.Name], broke[v.Name])
	}
	return verdicts
}

func promiseParts(kept, broke []string) []promisePart {
	switch {
	case len(broke) == 0 && len(kept) == 1:
		return []promisePart{{"kept", "kept by " + kept[0]}}
	case len(broke) == 0:
		return []promisePart{{"kept", "kept by all"}}
	case len(kept) == 0 && len(broke) == 1:
		return []promisePart{{"broken", "broken by " + broke[0]}}
	case len(kept) == 0:
		return []promisePart{{"broken", "broken by all"}}
	}
	return []promisePart{{"kept", "kept by " + list(kept)}, {"broken", "broken by " + list(broke)}}
}
