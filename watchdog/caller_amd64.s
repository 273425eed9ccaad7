#include "textflag.h"

// func CallerPC() uintptr
// The frame pointer is that of the function that calls this one, as this one has no frame.
TEXT ·CallerPC(SB), NOSPLIT|NOFRAME, $0-8
	MOVQ 8(BP), AX
	MOVQ AX, ret+0(FP)
	RET
