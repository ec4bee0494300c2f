;;; The features of a processor of x86-64, as it reports them itself.

; The registers eax, ebx, ecx and edx of a leaf.
define { i32, i32, i32, i32 } @report(i32 %leaf, i32 %subleaf) nounwind {
  %found = call { i32, i32, i32, i32 } asm sideeffect "cpuid", "={ax},={bx},={cx},={dx},{ax},{cx},~{dirflag},~{fpsr},~{flags}"(i32 %leaf, i32 %subleaf)
  ret { i32, i32, i32, i32 } %found
}

; The registers that the operating system keeps for each thread, as bits.
define i32 @kept_registers() nounwind {
  %found = call { i32, i32 } asm sideeffect "xgetbv", "={ax},={dx},{cx},~{dirflag},~{fpsr},~{flags}"(i32 0)
  %low = extractvalue { i32, i32 } %found, 0
  ret i32 %low
}

; Fills six words: ecx of leaf 1; ebx, ecx and edx of leaf 7; eax of its subleaf 1; ecx of leaf
; 0x80000001. AVX and AVX-512F are absent where the operating system does not keep their registers.
define void @read_features(ptr %words) nounwind {
entry:
  %leaves = call { i32, i32, i32, i32 } @report(i32 0, i32 0)
  %last = extractvalue { i32, i32, i32, i32 } %leaves, 0
  %one = call { i32, i32, i32, i32 } @report(i32 1, i32 0)
  %one.ecx = extractvalue { i32, i32, i32, i32 } %one, 2
  %extended = call { i32, i32, i32, i32 } @report(i32 2147483649, i32 0)
  %extended.ecx = extractvalue { i32, i32, i32, i32 } %extended, 2
  %at.extended = getelementptr i32, ptr %words, i64 5
  store i32 %extended.ecx, ptr %at.extended
  ; Bit 27: there is an instruction that tells which registers are kept.
  %tells = and i32 %one.ecx, 134217728
  %can.tell = icmp ne i32 %tells, 0
  br i1 %can.tell, label %ask, label %known
ask:
  %asked = call i32 @kept_registers()
  br label %known
known:
  %kept = phi i32 [ 0, %entry ], [ %asked, %ask ]
  ; Bits 1 and 2: registers of 128 and 256 bits; 5 to 7: masks, and registers of 512 bits.
  %kept.256 = and i32 %kept, 6
  %has.256 = icmp eq i32 %kept.256, 6
  %kept.512 = and i32 %kept, 230
  %has.512 = icmp eq i32 %kept.512, 230
  ; Bit 28 is AVX.
  %without.avx = and i32 %one.ecx, -268435457
  %first = select i1 %has.256, i32 %one.ecx, i32 %without.avx
  store i32 %first, ptr %words
  %has.seven = icmp uge i32 %last, 7
  br i1 %has.seven, label %seven, label %done
seven:
  %main = call { i32, i32, i32, i32 } @report(i32 7, i32 0)
  %main.ebx = extractvalue { i32, i32, i32, i32 } %main, 1
  ; Bit 16 is AVX-512F.
  %without.avx512f = and i32 %main.ebx, -65537
  %second = select i1 %has.512, i32 %main.ebx, i32 %without.avx512f
  %at.second = getelementptr i32, ptr %words, i64 1
  store i32 %second, ptr %at.second
  %main.ecx = extractvalue { i32, i32, i32, i32 } %main, 2
  %at.third = getelementptr i32, ptr %words, i64 2
  store i32 %main.ecx, ptr %at.third
  %main.edx = extractvalue { i32, i32, i32, i32 } %main, 3
  %at.fourth = getelementptr i32, ptr %words, i64 3
  store i32 %main.edx, ptr %at.fourth
  %subleaf = extractvalue { i32, i32, i32, i32 } %main, 0
  %has.subleaf = icmp uge i32 %subleaf, 1
  br i1 %has.subleaf, label %more, label %done
more:
  %other = call { i32, i32, i32, i32 } @report(i32 7, i32 1)
  %other.eax = extractvalue { i32, i32, i32, i32 } %other, 0
  %at.fifth = getelementptr i32, ptr %words, i64 4
  store i32 %other.eax, ptr %at.fifth
  br label %done
done:
  ret void
}
