"""sha256 of the contents of every known data set, without compression.

For several files, it is that of their contents, joined.
"""

SHA256 = {
    "a1a": "eb54c45f1bdb51286f803dd092eb8202b44637a858fc6c4e533a2d64a0d94b4e",
    "a1a.t": "b98244653c31ac5b151097866216831b962cb5a2857c91e8b276cdfcc4c44771",
    "a9a": "f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906",
    "a9a.t": "1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9",
    "australian": "d9ab76fad5193d511a5afa7cd3c7bf2288af4ddf6c9eb983058f6d1b0aa98ff2",
    "australian_scale": "86799bcc4dbcd41929a514fa181d1c1a40e01f009dee139d4141a194d7ecd9e3",
    "basehock": "f8a96af59d3f0894a7009a8beafddd7615d63e67462e5473bdeb4898795b21b7",
    "breast-cancer": "bd160c9d1b68cc9a7a885f2c5715245a9736b0d0bd12fa5e8fb12a255d396c5e",
    "breast-cancer_scale": "3c90cd8f884810a0ff2eaf2cc7aabf09073f33c2dfcf113d826a13ca60b257ad",
    "breast_tcga": "999898e30b78a0756236142950824b4fe6d7a3dd5c7721e54855463786ebb02c",
    "covtype.libsvm.binary.scale": (
        "859809c092ca933e1a8cc1cfa15e33b56cb11651e4e0a5b52b702abc315a6c0f"
    ),
    "diabetes": "d7cb20146b738c50bce1c1d5dbea336ecb9cfff8c3529547e2610d3a27c25335",
    "diabetes_scale": "0c07eb4c49e7a8ffb9c9f25095ac3022df2ca85b0dcb7d294c3ddea69f392cba",
    "fourclass": "407b9c6377c8c0a19eac962059b0c8c019be7af5db99e84f9dcd7649a35e1178",
    "fourclass_scale": "e27b003cd53d3141f8266b7e1db0d43e69f2824cc94c1d885fb27c8f2145a511",
    "german.numer": "69ffe0c4ba0bd91f936986d7c070dfca7e22064bbd5ab8e1fb925d6c86024ec8",
    "german.numer_scale": "97637cc6b994bd3fa78999c771bc044bea7a0cdf91d43b6ecfd10f7e7c4ebc82",
    "heart": "f0437e4847e6293a20850ef3fa2a809a1e11250a5b8760b259510bb321652470",
    "heart_scale": "5defa0a4c4c5bdaf3f55ae3828310252e8565c13ee37ce279e0b86d82e7f4ce9",
    "ionosphere_scale": "c4f7fb384c95f758fbc92e06652b952cdf906e28707a5f24ab5b1d691d9296e3",
    "liver-disorders": "d46ffd3a7a36f8c05cb6f23b44e4f6a125682c376cbfc8f34ec57528db174772",
    "liver-disorders_later5": "8981a5bd456ac2815358e4dc50554247c3904584edf2916064cdcbe547fd0aa9",
    "liver-disorders_scale": "61abdcd4577d5e47c6dd19db5d7e908e5078dd6632466e0aff2b7c7b824e84e9",
    "mfeat": "6092a69891afa22785bffd5a4348f52d49a764aa5d40751ec2c4dc0f6ed48a44",
    "mnist49.t10k": "b59f99e4ae14dd0983d54da1c0e6a14fed106499a122175635831555f9a42d16",
    "msrc": "3b3adfad0b4e484cef1c1ecd64ec887ddde9f7655ed638e2fee1f047ae2c9ff0",
    "mushrooms": "f39a4eb628dc61a7d43760815b061c9e497aa728ce1ad8bde57a09ef6043b538",
    "phishing": "0cf66ef36604c393da9359b2e5d894a2df8aee31fd184633cefa138add2ef08a",
    "prokaryotic": "20471598a8c819fb35e94f102cda4300a3b4f2cd185d3cbe0ea06e0349a7ed7c",
    "protein_fold": "07522212f7fab626684ab07b030b47902a5ae75d1b4215ec947e919dcfe05dcf",
    "skin_nonskin": "dc8999649592aae3164238a677a2977ee7e24ef57a2a1f3ab06f69a10f00d060",
    "sonar_scale": "5d820b62d9873f13b283738971b02aef67900fcd98b310c8e77eca3d0dc53daa",
    "splice": "eee33566cfe8988ec26122460cc712d66c5c5b79b966b259408e803addaa584d",
    "splice.t": "f40da7cfd17860f3f1a1bb7d118f8e86c306d232ca6ac6ddefbaaef266abaa03",
    "svmguide1": "2b9ab55b6236f62cee6b7739b52f9e7cb033771f39b9c22c1f1790d80ef14d7f",
    "svmguide1.t": "f9c2fd4c725172aeb4476fc1e2327d537f7fbc2f53f49dfd073f80efbe1ba8f7",
    "w8a": "6a9fa8fd5f524303240a5db07d4b3d4a51e8b7b4b20a914105d8e3e8c81640f2",
    "webkb": "a1a3e7c50dac79ade224d556e1ff371a190fbb56c174eadfe05bad74bcec52ea",
}
