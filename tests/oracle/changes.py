class Changes:
    def __init__(self, world, counts): pass
    def run(self, count): pass
