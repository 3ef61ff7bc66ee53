// Package bench shows what different ways to cache do when many processes want one key at the same time.
//
// # One run
//
// [Run] takes a scenario and a list of strategies. For each strategy it starts worker processes: the running executable again, with the
// argument [WorkerCommand], each an instance of the strategy with a Redis client of its own. The workers are told what to do by JSON
// lines on their standard input, and answer on their standard output ([Work]). When all are connected and warmed up on another key,
// each parks its callers, and is then told one instant of the machine's monotonic clock at which all callers of all processes go.
//
// The values come from [origin.Origin]: each load makes bytes of its own, so equal answers mean a shared load, and the loads of all
// processes add up to the loads of the cluster.
//
// # Extending it
//
// A strategy is a type with two methods and a line in the table of strategies. A scenario is a type that sets the stage, lets one
// strategy run, and lists the promises that the outcome is held against; it has a line in the table of scenarios.
package bench
