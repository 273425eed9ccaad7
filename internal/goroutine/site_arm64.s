#include "textflag.h"

// func Here() Site
// Each frame pointer points to the caller's, and above that lies the address to return to. The first one here is that of the
// function that calls this one, as this one has no frame; a goroutine's outermost is 0.
TEXT ·Here(SB), NOSPLIT|NOFRAME, $0-24
	MOVD 8(R29), R0
	MOVD R0, ret_PC+0(FP)
	MOVD (R29), R1
	MOVD 8(R1), R0
	MOVD R0, ret_Outer+8(FP)
	MOVD (R1), R1
	MOVD $0, R0
	CBZ R1, outermost
	MOVD 8(R1), R0
outermost:
	MOVD R0, ret_Beyond+16(FP)
	RET
