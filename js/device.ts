// Numbers that were left on a graphics processor. Views draw them there; nothing here needs the engine.

/** A rectangle of cells, or of blocks of them. */
export interface Region {
  readonly top: number;
  readonly left: number;
  readonly bottom: number;
  readonly right: number;
}

/** What numbers there are beside the finite ones. */
export interface Outside {
  /** Whether there is NaN. */
  readonly nan: boolean;
  /** Whether there is infinity. */
  readonly plus: boolean;
  /** Whether there is -infinity. */
  readonly minus: boolean;
}

/** How a matrix on a graphics processor is looked at. */
export interface DeviceLook {
  /** Hidden cells, row-major, nonzero where hidden; null for none. They are left out of the picture. */
  readonly hidden: Uint8Array | null;
  /** Whether a number counts as its share of the largest of its row. */
  readonly byRow: boolean;
  /** Whether rows are drawn across and columns down. */
  readonly transposed: boolean;
}

/** What there is in a matrix. */
export interface Survey {
  /** The largest finite magnitude of what is not left out. */
  readonly reach: number;
  /** What there is beside finite numbers. */
  readonly outside: Outside;
  /** By rows, what each row's numbers are multiplied by; else null. */
  readonly factors: Float32Array | null;
}

/** A region of blocks as colours. */
export interface DevicePicture {
  /** The side of a block in cells, a power of two. */
  readonly block: number;
  /** Counted in blocks. */
  readonly region: Region;
  /** From which number on each step of the palette but the first is reached, as 32 bits that lie in the numbers' order. */
  readonly thresholds: Uint32Array;
  /** The colours of the steps, of NaN, infinity and -infinity; red in the lowest eight bits. */
  readonly colors: Uint32Array;
}

/** A matrix that is ready to be drawn on a graphics processor. Where the processor is gone it gives null, and its numbers are to be read. */
export interface DeviceMatrix {
  readonly survey: Survey;
  /** A pixel for a block: its largest magnitude. What is left out altogether is transparent. */
  draw(picture: DevicePicture): Promise<ImageBitmap | null>;
  /** The numbers of a region of cells, row-major. */
  cells(region: Region): Promise<Float32Array | null>;
  /** Frees what drawing needed; the numbers stay. */
  free(): void;
}

/** A stage's numbers, left on a graphics processor. What `trace.drawable` gives, and views take in a tensor's place. */
export interface DeviceTensor {
  /** As a tensor's. */
  readonly shape: readonly number[];
  /** One entry of the first axis: a head's matrix, of weights. */
  at(index: number): DeviceTensor;
  /** The numbers themselves. */
  read(): Promise<{ readonly data: Float32Array; readonly shape: readonly number[] }>;
  /** Makes a tensor of two axes ready to be drawn; null where it is not on a processor any more. @internal */
  open(look: DeviceLook): Promise<DeviceMatrix | null>;
}
