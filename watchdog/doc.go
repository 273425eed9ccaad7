// Package watchdog finds the calls that are late and tells where each of them stands: it writes the stack of exactly the goroutine that
// serves the late call, without stopping the world for longer than a goroutine profile does (well under a millisecond).
//
// A profile shows stacks and profiler labels, but no goroutine numbers. So every goroutine in a guarded call wears a prebuilt label with its
// number (about 10 ns, no allocation). When a call becomes late one profile is taken, read as a stream, and the stack that provably belongs
// to the call is kept. Where nothing can be proved the report says why it shows no stack: it never shows another goroutine's.
//
//	w, err := watchdog.New(watchdog.Config{Source: source, Log: watchdog.Zerolog(logger)})
//	if err != nil {
//		return err
//	}
//	w.Start()
//	defer w.Close()
//
// A late call is reported when it becomes slow, once for every doubling of its age, and when it has ended. Many late calls at once share one
// profile, and those with equal stacks one line, so that ten thousand stuck calls make one readable page. While nobody is late no profile is
// taken at all.
//
// Package guard does all this for every guarded call, so that most programs never import this package. It is not a profiler (it looks at calls
// that are late already), no tracing, and no dead-man's switch for the process: its goroutine starves with all others.
package watchdog
