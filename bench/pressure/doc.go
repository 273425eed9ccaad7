// Command pressure shows how fast each signal of package pressure notices overload, and whether it takes a busy machine for
// an overloaded one.
//
//	go run ./pressure           the table as Markdown, and its picture in ../docs/img (three minutes)
//	go run ./pressure -quick    one round of each, no picture: to see that it works
//	go run ./pressure -check    exit status 1 when a target is missed
//	go run ./pressure -json     the same as JSON
//
// Every run is a process of its own that stands idle for two seconds and is then loaded for some more: by eight goroutines that
// spin, by jobs of 2 ms of CPU time that come at 130 % of what the process may use (an open load: they come whether or not the ones before are done),
// and by the same jobs at 85 %, which is busy and must not be taken for overload. Where the system lets it, the
// same is done in a cgroup with a quota of half a CPU.
//
// What counts is what a caller is told: the jobs themselves ask the sampler, and the first that is told "not normal" stops the
// clock. A sampler that starves tells nobody anything, but its sample grows old, and callers see that.
//
// Run it on a machine that does nothing else: with one core taken by somebody, 85 % of two is overload. On one that is never idle GOMAXPROCS=1 leaves
// the others their room; -match repeats one column, -random makes the steady load come at random.
package main
