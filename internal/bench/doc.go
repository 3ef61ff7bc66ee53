// Package bench shows what different ways to cache do when much goes on at the same time, or goes wrong.
//
// # One run
//
// [Run] takes a scenario and a list of strategies. For each strategy it starts worker processes: the running executable again, with the
// argument [WorkerCommand], each an instance of the strategy with a Redis client of its own. The workers are told what to do by JSON
// lines on their standard input, and answer on their standard output ([Work]). When all are connected and warmed up on another key,
// they are told one instant of the machine's monotonic clock at which their callers begin: all at once, each calling again and again, or
// at the instants of a Poisson process. Meanwhile the scenario's events happen: a worker is killed or stopped, the way to Redis is cut.
//
// # What is seen
//
// The values come from [origin.Origin]: each load makes bytes of its own, so equal answers mean a shared load. All processes share a
// board in memory, which outlives a worker that is killed: which loads began, the version of the data that a load reads, and the newest
// version whose invalidation has returned. A caller looks at the latter before it calls; an answer of an older version is stale.
//
// # Extending it
//
// A strategy is a type with three methods and a line in the table of strategies. A scenario is a function that returns what happens and
// the promises that the outcome is held against; it has a line in the table of scenarios.
package bench
